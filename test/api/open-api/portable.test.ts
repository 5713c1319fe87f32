import type { AnySchemaObject } from 'ajv'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describeApi } from '../../../src/api/open-api/document.ts'
import type { JsonSchema } from '../../../src/base/json-schema.ts'
import { createConnectors } from '../../../src/connectors/index.ts'
import { dateFrom, dateTo } from '../../../src/domain/date-range.ts'

// What generators of clients for other languages need of the description. test/api/open-api/outside.release.test.ts runs some of them.

type Visit = (node: Record<string, unknown>, path: string) => void

const walk = (value: unknown, visit: Visit, path = ''): void => {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) visit(value as Record<string, unknown>, path)
  for (const [key, inner] of Object.entries(value)) walk(inner, visit, `${path}/${key}`)
}

const document = describeApi()
const { schemas } = document.components

const patterns = (() => {
  const found = new Set<string>()
  walk(document, ({ pattern }) => {
    if (typeof pattern === 'string') found.add(pattern)
  })
  return [...found]
})()

// The syntax that the regular expressions of JavaScript, Python, Java and Go (RE2) share, with the same meaning in all four.
const literal = String.raw`[^\\()[\]{}|^$*+?."${'`'}]`
const escape = String.raw`\\(?:[\\()[\]{}|^$*+?./-]|x[0-9a-fA-F]{2}|[bsS])`
const classEscape = String.raw`\\(?:[\\[\]^/-]|x[0-9a-fA-F]{2}|[sS])`
const characterClass = String.raw`\[\^?(?:(?!--|&&|\|\||~~)[^\\[\]"${'`'}]|${classEscape})+\]`
const quantifier = String.raw`(?:[*+?]|\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\})`
const token = new RegExp(`^(?:(?:${literal}|\\.|${escape}|${characterClass}|\\))${quantifier}?|\\((?:\\?:)?|[|^$])`, 'u')

const unsupportedPart = (pattern: string): string => {
  let rest = pattern
  while (rest !== '') {
    const match = token.exec(rest)
    if (!match) return rest
    rest = rest.slice(match[0].length)
  }
  return ''
}

describe('the patterns of the description', () => {
  test('are in the syntax that JavaScript, Python, Java and Go share, without quotes, which break the struct tags of Go', () => {
    expect(patterns.length).toBeGreaterThan(15)
    expect(patterns.filter((pattern) => unsupportedPart(pattern) !== '')).toEqual([])
  })

  test.each([
    String.raw`^\P{Cc}+$`,
    String.raw`^\p{L}$`,
    '^(?!/)a$',
    '^(?<=a)b$',
    '^(?<name>a)$',
    String.raw`^(a)\1$`,
    String.raw`^\u0041$`,
    String.raw`^\d{3}$`,
    '^"$',
    '^[&&[a]]$',
    '^a++$',
    '^a{1001}$',
  ])('this check refuses %s', (pattern) => {
    expect(unsupportedPart(pattern)).not.toBe('')
  })

  test('a text with control characters does not match, any other does', () => {
    const { properties } = schemas['DestinationConfigObjstore'] as { properties: Record<string, { pattern: string }> }
    const prefix = new RegExp(properties['prefix']!.pattern, 'u')
    expect(['', 'a', 'a/b/', 'Rechnungen für Ümit/', '\u{1F4C4}'].every((text) => prefix.test(text))).toBe(true)
    expect(['/a', 'a\nb', '\t', 'a\u0085', '\u007F'].some((text) => prefix.test(text))).toBe(false)
  })

  test('the cursor of a list has one', () => {
    const before = document.paths['/requests']!['get']!.parameters.find(({ name }) => name === 'before')
    expect(before?.schema.pattern).toBe('^[0-7][0-9A-HJKMNP-TV-Z]{25}$')
  })
})

describe('the names of the description', () => {
  test('no schema is called like the constructor that a Go client has for another schema', () => {
    expect(Object.keys(schemas).filter((name) => name.startsWith('New') && name.slice(3) in schemas)).toEqual([])
  })

  test('no named schema has a title, which a generator would take as its name', () => {
    expect(Object.keys(schemas).filter((name) => schemas[name]!.title !== undefined)).toEqual([])
  })

  test('every body with JSON, every object in it, and every list of values, is a named schema', () => {
    const unnamed: string[] = []
    walk({ paths: document.paths, webhooks: document.webhooks }, (node, path) => {
      const json = (node['content'] as Record<string, { schema: JsonSchema }> | undefined)?.['application/json']
      if (json && json.schema.$ref === undefined) unnamed.push(path)
    })
    walk(schemas, (node, path) => {
      const isNamed = path.split('/').length === 2
      const isConnectors = /^\/Destination(Config|Credentials)/.test(path)
      if (typeof node['properties'] === 'object' && !isNamed && !path.endsWith('/properties')) unnamed.push(path)
      if (Array.isArray(node['enum']) && !isNamed && !isConnectors) unnamed.push(path)
    })
    expect(unnamed).toEqual([])
  })

  test('each member of an anyOf is a reference, null, or has a title or a type of its own', () => {
    const bad: string[] = []
    walk(document, ({ anyOf }, path) => {
      if (!Array.isArray(anyOf)) return
      const members = anyOf as JsonSchema[]
      const inline = members.filter(({ $ref, type }) => $ref === undefined && type !== 'null')
      if (inline.some(({ type }) => type === 'object' || type === 'array') && inline.some(({ title }) => title === undefined))
        bad.push(path)
    })
    expect(bad).toEqual([])
  })
})

const answers = (() => {
  const found = new Set<string>()
  const follow = (node: unknown) =>
    walk(node, ({ $ref }) => {
      const name = typeof $ref === 'string' ? $ref.split('/').at(-1)! : undefined
      if (name === undefined || !(name in schemas) || found.has(name)) return
      found.add(name)
      follow(schemas[name])
    })
  for (const methods of Object.values(document.paths)) for (const { responses } of Object.values(methods)) follow(responses)
  follow(document.webhooks)
  follow(document.components.responses)
  return Object.fromEntries([...found].map((name) => [name, schemas[name]!]))
})()

describe('the values of the description', () => {
  test('an answer may have a text that a later version adds, and a request may not', () => {
    const closed: string[] = []
    walk(answers, (node, path) => {
      if (Array.isArray(node['enum'])) closed.push(path)
    })
    expect(closed).toEqual([])
    expect(answers['DocumentStatus']).toEqual({
      type: 'string',
      'x-extensible-enum': ['pending', 'delivered', 'failed', 'retrying', 'discarded'],
    })
    expect(document.paths['/documents']!['get']!.parameters.find(({ name }) => name === 'status')?.schema).toEqual({
      $ref: '#/components/schemas/DocumentStatusInput',
    })
    expect(schemas['DocumentStatusInput']).toEqual({ type: 'string', enum: ['pending', 'delivered', 'failed', 'retrying', 'discarded'] })
  })

  test('every integer that may need more than 32 bits has 64', () => {
    const narrow: string[] = []
    walk(schemas, ({ type, format, maximum }, path) => {
      const fits = typeof maximum === 'number' && maximum < 2 ** 31
      if ([type].flat().includes('integer') && !fits && format !== 'int64') narrow.push(path)
    })
    expect(narrow).toEqual([])
    expect(schemas['DocumentAttributes']!.properties!['size_bytes']).toEqual({ type: 'integer', format: 'int64' })
  })

  test('no default is an object, of which the generator of Go clients makes invalid code', () => {
    const objects: string[] = []
    walk(schemas, ({ default: value }, path) => {
      if (typeof value === 'object' && value !== null && !Array.isArray(value) && !path.endsWith('/properties')) objects.push(path)
    })
    expect(objects).toEqual([])
  })

  test('no open text has a default, of which the generator of Java clients makes invalid code', () => {
    const open: string[] = []
    walk(schemas, ({ default: value, $ref }, path) => {
      if (value !== undefined && typeof $ref === 'string' && !schemas[$ref.split('/').at(-1)!]!.enum) open.push(path)
    })
    expect(open).toEqual([])
  })

  test('an export is text, because a client for Python cannot make a file of it', () => {
    const { responses } = document.paths['/audit-logs.csv']!['get']!
    expect(responses['200']).toMatchObject({ content: { 'text/csv': { schema: { type: 'string' } } } })
    expect(JSON.stringify(responses['200'])).not.toContain('binary')
  })

  test.each([
    ['2026-11-21', true],
    ['2028-02-29', true],
    ['2000-02-29', true],
    ['1900-02-29', false],
    ['2026-02-29', false],
    ['2026-11-21T09:00:00Z', true],
    ['2026-11-21T09:00:00.123+05:30', true],
    ['2026-63-01', false],
    ['2026-00-10', false],
    ['2026-04-31', false],
    ['2026-02-30', false],
    ['2026-11-21T99:00:00Z', false],
    ['2026-11-21T09:60:00Z', false],
    ['2026-11-21T09:00Z', false],
    ['2026-11-21T09:00:00', false],
    ['2026-11-21T09:00:00+99:00', false],
  ])('%s is a date in the description as in the API: %s', (text, isDate) => {
    const { schema } = document.paths['/documents']!['get']!.parameters.find(({ name }) => name === 'date_from')!
    expect(new RegExp(schema.pattern!, 'u').test(text)).toBe(isDate)
    expect(dateFrom.safeParse(text).success).toBe(isDate)
  })

  test('a date whose year in UTC has five digits, or is before the first one, is the nearest that a timestamp can name', () => {
    expect(dateTo.parse('9999-12-31T23:59:59-05:00')).toEqual(new Date('9999-12-31T23:59:59.999Z'))
    expect(dateFrom.parse('0000-01-01')).toEqual(new Date('0001-01-01T00:00:00.000Z'))
  })

  test('the settings of a connection have their schema, closed in a request and open in an answer', () => {
    expect(schemas['Connection']!.properties!['settings']).toEqual({ $ref: '#/components/schemas/ConnectionSettings' })
    expect(schemas['ConnectionSettings']).not.toHaveProperty('additionalProperties')
    expect(schemas['ConnectionSettings']).not.toHaveProperty('required')
    expect(schemas['ConnectionSettingsInput']).toMatchObject({ additionalProperties: false })
    for (const name of ['ConnectionInput', 'ConnectionChange', 'ConnectionPreviewInput']) {
      expect(schemas[name]!.properties!['settings']).toMatchObject({ $ref: '#/components/schemas/ConnectionSettingsInput' })
    }
  })
})

test('a parameter has one type, because a generated Java client has no class for a choice of formats', () => {
  const choices = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods).flatMap(({ parameters }) =>
      parameters.filter(({ schema }) => schema.anyOf !== undefined || schema.oneOf !== undefined).map(({ name }) => `${path} ${name}`),
    ),
  )
  expect(choices).toEqual([])
})

describe('the examples of the description', () => {
  const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }), { mode: 'full' })
  ajv.addSchema({ ...(document as unknown as AnySchemaObject), $id: 'api' })
  const errorsOf = (schema: JsonSchema, value: unknown) => {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components')) as AnySchemaObject
    const validate = ajv.compile(absolute)
    return validate(value) ? [] : [`${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`]
  }

  test('exist for every body, response and required parameter, and match their schemas', () => {
    const errors: string[] = []
    let count = 0
    walk(document, (node, path) => {
      if (!('schema' in node)) return
      // A webhook's parameters are the headers that the relay sends.
      const isOptional = 'in' in node && node['required'] !== true && !path.startsWith('/webhooks')
      const { schema, example, examples } = node as { schema: JsonSchema; example?: unknown; examples?: Record<string, { value: unknown }> }
      if (schema['format'] === 'binary' || path.startsWith('/components/headers') || path.includes('/headers/')) return
      if (isOptional) {
        if (example !== undefined) errors.push(`${path}: has an example, which Swagger UI would send`)
        return
      }
      const values = examples ? Object.values(examples).map(({ value }) => value) : [example]
      count += values.length
      errors.push(
        ...values.flatMap((value) => (value === undefined ? ['no example'] : errorsOf(schema, value)).map((at) => `${path}: ${at}`)),
      )
    })
    expect(errors).toEqual([])
    expect(count).toBeGreaterThan(100)
  })

  test('are not placeholders', () => {
    const text = JSON.stringify(document)
    expect(text.match(/no example for \w+/g)).toBeNull()
    expect(text.match(/"\.\.\."/g)).toBeNull()
  })

  test.each(createConnectors({ RELAY_DIRECTORY_ROOTS: [{ value: '/srv/archive' }] }).all)(
    'of a $kind destination passes its checks',
    (connector) => {
      const { config, credentials } = connector.example
      const issues = [connector.config.safeParse(config), connector.credentials.safeParse(credentials)].flatMap(({ error }) =>
        (error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`),
      )
      // The description contains no private key, not even an unused one.
      expect(issues).toEqual(connector.kind === 'drive' ? ['service_account.private_key: must be an RSA private key in PEM form'] : [])
    },
  )
})

test('the bytes of a download have a media type that generators of clients know', () => {
  const contents = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ responses }) => Object.values(responses) as { content?: Record<string, object> }[])
    .flatMap(({ content }) => (content && '*/*' in content ? [Object.keys(content)[0]] : []))
  expect(new Set(contents)).toEqual(new Set(['application/octet-stream']))
})
