import { z } from 'zod'
import { apiEndpoints, type EndpointDeps } from '../../src/api/app.ts'
import { plainMessages } from '../../src/base/issue-messages.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { connectionSettingsFields } from '../../src/domain/connection-settings.ts'

type Code = z.core.$ZodIssue['code']

const issuesOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value, plainMessages).error?.issues ?? []
const name = z.strictObject({ name: z.string() })

/** Values of every kind of issue, with the message that the caller gets. */
const kinds: Record<Code, [schema: z.ZodType, value: unknown, message: string][]> = {
  invalid_type: [
    [z.string(), undefined, 'is required'],
    [z.string(), 5, 'must be a string'],
    [z.string(), null, 'must be a string'],
    [z.number(), 'x', 'must be a number'],
    [z.coerce.number(), 'x', 'must be a number'],
    [z.int(), 1.5, 'must be a whole number'],
    [z.boolean(), 'yes', 'must be true or false'],
    [z.array(z.string()), {}, 'must be an array'],
    [z.object({}), 'x', 'must be an object'],
    [z.record(z.string(), z.unknown()), [], 'must be an object'],
    [z.null(), 1, 'must be null'],
    [z.date(), 'x', 'must be a date'],
    [z.never(), 1, 'is not accepted here'],
    [z.symbol(), 1, 'must be symbol'],
  ],
  too_big: [
    [z.int().max(90), 91, 'must be at most 90'],
    [z.number().lt(90), 90, 'must be less than 90'],
    [z.string().max(2), 'abc', 'must have at most 2 characters'],
    [z.string().max(1), 'abc', 'must have at most 1 character'],
    [z.string().length(2), 'abc', 'must have exactly 2 characters'],
    [z.array(z.string()).max(1), ['a', 'b'], 'must have at most 1 item'],
    [z.set(z.string()).max(2), new Set(['a', 'b', 'c']), 'must have at most 2 items'],
    [z.date().max(new Date(0)), new Date(1), 'must be at most 1970-01-01T00:00:00.000Z'],
  ],
  too_small: [
    [z.int().min(1), 0, 'must be at least 1'],
    [z.number().positive(), 0, 'must be more than 0'],
    [z.string().min(1), '', 'must not be empty'],
    [z.string().min(2), 'a', 'must have at least 2 characters'],
    [z.string().length(2), 'a', 'must have exactly 2 characters'],
    [z.array(z.string()).min(1), [], 'must not be empty'],
    [z.array(z.string()).min(2), ['a'], 'must have at least 2 items'],
  ],
  invalid_format: [
    [z.email(), 'x', 'must be an e-mail address'],
    [z.url(), 'x', 'must be a URL'],
    [z.iso.date(), 'x', 'must be a date, like 2026-11-21'],
    [z.iso.datetime({ offset: true }), 'x', 'must be an ISO 8601 timestamp with a time zone, like 2026-11-21T09:00:00Z'],
    [z.cidrv4(), 'x', 'must be an IPv4 address range, like 10.0.0.0/8'],
    [z.uuid(), 'x', 'must be in the format uuid'],
    [z.string().regex(/^[a-z]+$/), '5', 'must match the pattern /^[a-z]+$/'],
    [z.string().startsWith('a'), 'b', 'must start with "a"'],
    [z.string().endsWith('a'), 'b', 'must end with "a"'],
    [z.string().includes('a'), 'b', 'must contain "a"'],
  ],
  not_multiple_of: [[z.number().multipleOf(5), 6, 'must be a multiple of 5']],
  unrecognized_keys: [[name, { name: 'a', colour: 'red', size: 1 }, 'contains unknown keys: colour, size']],
  invalid_union: [[z.union([z.string(), z.number()]), true, 'has none of the accepted forms']],
  invalid_key: [[z.record(z.string().min(2), z.string()), { a: 'b' }, 'contains an invalid name']],
  invalid_element: [[z.map(z.object({}), z.string()), new Map([[{}, 1]]), 'contains an invalid value']],
  invalid_value: [
    [z.literal('failed'), 'done', 'must be "failed"'],
    [z.enum(['active', 'inactive']), 'on', 'must be one of "active", "inactive"'],
    [z.enum(['active', 'inactive']), undefined, 'is required'],
  ],
  custom: [[z.string().refine(() => false), 'a', 'is invalid']],
}

const rows = Object.entries(kinds).flatMap(([code, examples]) => examples.map((example) => [code, ...example] as const))

test.each(rows)('%s is reported in plain words', (code, schema, value, message) => {
  expect(issuesOf(schema, value)).toMatchObject([{ code, message }])
})

test('the message of a schema takes precedence', () => {
  expect(issuesOf(z.string().regex(/^\d$/, 'must be a digit'), 'x')).toMatchObject([{ message: 'must be a digit' }])
})

const endpoints = apiEndpoints({} as EndpointDeps)
const connectors = createConnectors().all
const schemas: [name: string, schema: z.ZodObject | z.ZodType][] = [
  ...endpoints.flatMap(({ method, path, query, body }) =>
    [query, body].flatMap((schema): [string, z.ZodType][] => (schema ? [[`${method} ${path}`, schema]] : [])),
  ),
  ...connectors.flatMap(({ kind, config, credentials }): [string, z.ZodType][] => [
    [`config of ${kind}`, config],
    [`credentials of ${kind}`, credentials],
  ]),
  ['connection settings', connectionSettingsFields],
]
const keysOf = (schema: z.ZodType): string[] => {
  const { properties, oneOf, anyOf } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const parts = [{ properties }, ...(oneOf ?? []), ...(anyOf ?? [])]
  return parts.flatMap((part) => (typeof part === 'object' ? Object.keys(part.properties ?? {}) : []))
}
const hostileValues = [undefined, null, 5, -1, 1e12, 1.5, '', 'x', 'x'.repeat(100_000), true, [], [5], {}, { colour: 'red' }]

test.each(schemas)('no message about %s has the raw words of the validator', (_, schema) => {
  const keys = keysOf(schema)
  const messages = hostileValues
    .flatMap((value) => [value, Object.fromEntries(keys.map((key) => [key, value]))])
    .flatMap((value) => issuesOf(schema, value).map((issue) => issue.message))
  expect(messages.length).toBeGreaterThan(0)
  expect(messages.filter((message) => /Invalid|Too (big|small)|Unrecognized|expected [a-z]|received [a-z]|input/.test(message))).toEqual([])
})
