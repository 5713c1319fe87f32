// How values are written. `locale` is a BCP 47 tag.

const bytesPerStep = 1_000
const units = ['B', 'kB', 'MB', 'GB', 'TB']

export const formatBytes = (bytes: number, locale: string): string => {
  const step = Math.min(units.length - 1, bytes < bytesPerStep ? 0 : Math.floor(Math.log10(bytes) / 3))
  const value = bytes / bytesPerStep ** step
  return `${new Intl.NumberFormat(locale, { maximumFractionDigits: step === 0 || value >= 100 ? 0 : 1 }).format(value)} ${units[step]}`
}

export const formatTime = (iso: string, locale: string): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(iso))

const relativeSteps: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** `3 hours ago`, `in 2 minutes`. @param nowMs milliseconds since 1970 */
export const formatRelative = (iso: string, nowMs: number, locale: string): string => {
  const seconds = Math.round((Date.parse(iso) - nowMs) / 1_000)
  const [unit, size] = relativeSteps.find(([, step]) => Math.abs(seconds) >= step) ?? relativeSteps.at(-1)!
  return new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(Math.trunc(seconds / size), unit)
}

/** `850 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h` */
export const formatDuration = (ms: number, locale: string): string => {
  const number = (value: number, digits = 0) => new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value)
  if (ms < 1_000) return `${number(Math.max(0, Math.round(ms)))} ms`
  const seconds = ms / 1_000
  if (seconds < 60) return `${number(seconds, 1)} s`
  const parts: [size: number, unit: string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ]
  const first = parts.findIndex(([size]) => seconds >= size)
  const [[size, unit], [nextSize, nextUnit]] = [parts[first]!, parts[first + 1]!]
  const rest = Math.floor((seconds % size) / nextSize)
  return `${number(Math.floor(seconds / size))} ${unit}${rest > 0 ? ` ${rest} ${nextUnit}` : ''}`
}

/** Returns the name of a repository with the identifier that the source system uses, if they differ. */
export const repositoryText = ({ repo_id: repoId, repository_name: name }: { repo_id: string; repository_name: string }): string =>
  name === repoId || name === '' ? repoId : `${name} (${repoId})`
