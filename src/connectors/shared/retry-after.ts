type Header = string | string[] | null | undefined
export type AnswerHeaders = Readonly<Record<string, Header>>

const valuesOf = (header: Header): string[] => [header ?? []].flat().map((text) => text.trim().replace(/^"(.*)"$/, '$1'))

// Google writes `2.542s` in the body of an error, and some servers write it in the header.
const number = /^\+?(\d+(?:\.\d*)?(?:e\+?\d+)?|\.\d+)\s*(?:s|secs?|seconds?)?$/i
// Dates of RFC 9110 in its three forms, and of ISO 8601. `Date.parse` takes almost any number for a year.
const date = /^(?:[a-z]{3,9},? |\d{4}-\d\d-\d\dt).*\d\d:\d\d/i
const zone = /(?:gmt|utc|z|[+-]\d\d:?\d\d)$/i

const numberIn = (text: string): number | undefined => {
  const value = Number(number.exec(text)?.[1] ?? NaN)
  return Number.isNaN(value) ? undefined : value
}

const dateIn = (text: string): number | undefined => {
  const time = date.test(text) ? Date.parse(zone.test(text) ? text : `${text} GMT`) : NaN
  return Number.isNaN(time) ? undefined : time
}

const delayIn = (text: string, now: number): number | undefined => {
  const seconds = numberIn(text)
  const time = dateIn(text)
  if (seconds !== undefined) return seconds * 1_000
  return time === undefined ? undefined : Math.max(0, time - now)
}

const longest = (delays: (number | undefined)[]): number | undefined => {
  const known = delays.filter((delay) => delay !== undefined)
  // Both a timer and the column of an attempt have their limits.
  return known.length === 0 ? undefined : Math.min(Math.ceil(Math.max(...known)), waitMaxMs)
}

const waitMaxMs = 365 * 86_400_000

/**
 * Parses a Retry-After header: seconds, with a fraction or without, or a date. Of several values, which a proxy may have joined, the longest
 * counts.
 * @returns milliseconds, or `undefined` if there is none that can be parsed, such as a negative one
 */
export const retryAfterMs = (header: Header, now: Date): number | undefined => {
  const texts = valuesOf(header)
  // A date has a comma after the day of the week.
  const parts = texts.flatMap((text) => (dateIn(text) === undefined ? text.split(/,(?!\s*\d\d[ -][a-z]{3})/i) : [text]))
  return longest(parts.map((part) => delayIn(part.trim(), now.getTime())))
}

// In milliseconds: Azure, and clients of several vendors.
const millisecondHeaders = ['retry-after-ms', 'x-ms-retry-after-ms']
// How many requests are left, and when there are more: in seconds, or as a time of Unix (GitHub).
const quotaPrefixes = ['ratelimit-', 'x-ratelimit-', 'x-rate-limit-']
const unixTimeMin = 1_000_000_000

/**
 * Returns the time after which an answer asks the relay to try again, in any form that is in use. A date counts from the date of the answer, if it has
 * one: the clocks may differ.
 * @param headers with names in lower case
 */
export const waitOf = (headers: AnswerHeaders, now: Date): number | undefined => {
  const [told = ''] = valuesOf(headers.date)
  const asked = retryAfterMs(headers['retry-after'], new Date(dateIn(told) ?? now))
  if (asked !== undefined) return asked
  const milliseconds = longest(millisecondHeaders.map((name) => numberIn(valuesOf(headers[name])[0] ?? '')))
  if (milliseconds !== undefined) return milliseconds
  const resets = quotaPrefixes.map((prefix) => {
    const [left, reset] = ['remaining', 'reset'].map((name) => numberIn(valuesOf(headers[prefix + name])[0] ?? ''))
    if (left !== 0 || reset === undefined) return undefined
    return reset < unixTimeMin ? reset * 1_000 : Math.max(0, reset * 1_000 - now.getTime())
  })
  return longest(resets)
}
