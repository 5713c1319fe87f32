import { z } from 'zod'

type Issue = z.core.$ZodRawIssue
type Code = z.core.$ZodIssue['code']
type IssueOf<Kind extends Code> = Extract<Issue, { code: Kind }>

const types: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  nan: 'a number',
  int: 'a whole number',
  bigint: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  tuple: 'an array',
  object: 'an object',
  record: 'an object',
  map: 'an object',
  null: 'null',
  date: 'a date',
}

const formats: Record<string, string> = {
  email: 'an e-mail address',
  url: 'a URL',
  datetime: 'an ISO 8601 timestamp with a time zone, like 2026-11-21T09:00:00Z',
  date: 'a date, like 2026-11-21',
  cidrv4: 'an IPv4 address range, like 10.0.0.0/8',
  cidrv6: 'an IPv6 address range, like fd00::/8',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  base64: 'base64',
  base64url: 'base64url',
}

/** How a size is counted, by the type of the value. A number is its own size. */
const units: Record<string, [one: string, many: string]> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
  set: ['item', 'items'],
  map: ['entry', 'entries'],
  record: ['entry', 'entries'],
  object: ['entry', 'entries'],
  file: ['byte', 'bytes'],
}

/** Returns a rule like "must be at most 90" or "must have at most 3 items". */
const bound = (rule: string, limit: number | bigint, origin: string): string => {
  if (origin === 'date') return `must be ${rule} ${new Date(Number(limit)).toISOString()}`
  const unit = units[origin]
  return unit ? `must have ${rule} ${limit} ${limit === 1 ? unit[0] : unit[1]}` : `must be ${rule} ${limit}`
}

const quoted = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value) ?? String(value)).join(', ')

const formatMessage = (issue: IssueOf<'invalid_format'>): string => {
  if (issue.format === 'starts_with') return `must start with ${JSON.stringify(issue['prefix'])}`
  if (issue.format === 'ends_with') return `must end with ${JSON.stringify(issue['suffix'])}`
  if (issue.format === 'includes') return `must contain ${JSON.stringify(issue['includes'])}`
  if (issue.format === 'regex') return `must match the pattern ${issue.pattern}`
  return `must be ${formats[issue.format] ?? `in the format ${issue.format}`}`
}

/** The message of a union without a message of its own. The messages of its closest alternative say more. */
export const noAlternativeMatches = 'has none of the accepted forms'

const messages: { [Kind in Code]: (issue: IssueOf<Kind>) => string } = {
  invalid_type: ({ expected, input }) =>
    expected === 'never' ? 'is not accepted here' : input === undefined ? 'is required' : `must be ${types[expected] ?? expected}`,
  too_big: ({ origin, maximum, inclusive, exact }) =>
    bound(exact ? 'exactly' : inclusive === false ? 'less than' : 'at most', maximum, origin),
  too_small: ({ origin, minimum, inclusive, exact }) =>
    !exact && Number(minimum) === 1 && (origin === 'string' || origin === 'array')
      ? 'must not be empty'
      : bound(exact ? 'exactly' : inclusive === false ? 'more than' : 'at least', minimum, origin),
  invalid_format: formatMessage,
  not_multiple_of: ({ divisor }) => `must be a multiple of ${divisor}`,
  unrecognized_keys: ({ keys }) => `contains unknown keys: ${keys.join(', ')}`,
  invalid_union: () => noAlternativeMatches,
  invalid_key: () => 'contains an invalid name',
  invalid_element: () => 'contains an invalid value',
  invalid_value: ({ values, input }) => {
    if (input === undefined) return 'is required'
    return values.length === 1 ? `must be ${quoted(values)}` : `must be one of ${quoted(values)}`
  },
  custom: () => 'is invalid',
}

/**
 * Returns the message of an invalid value in plain words, to be read after the name of the value. A message that a schema states itself
 * takes precedence.
 */
const issueMessage = (issue: Issue): string => (messages[issue.code] as (issue: Issue) => string)(issue)

/** Options that make a schema report issues in plain words. Every value from outside is parsed with them. */
export const plainMessages = { error: issueMessage, reportInput: true } as const
