const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
type Level = (typeof levels)[number]

/**
 * Returns the lines of a log of the relay that have one of these levels. Lines that are no JSON are skipped: Node writes some, and the
 * first line of a log may be incomplete.
 * @throws `Error` for a level that src/base/log.ts does not write. Otherwise a new format of the log would look like a log without errors
 */
export const linesOfLevel = (log: string, wanted: readonly Level[]): string[] =>
  log.split('\n').filter((line) => {
    const level = levelOf(line)
    return level !== undefined && wanted.includes(level)
  })

const levelOf = (line: string): Level | undefined => {
  if (!line.startsWith('{')) return undefined
  let level: unknown
  try {
    ;({ level } = JSON.parse(line) as { level?: unknown })
  } catch {
    return undefined
  }
  const known = levels.find((name) => name === level)
  if (known === undefined) throw new Error(`a line of the log has an unknown level: ${line}`)
  return known
}
