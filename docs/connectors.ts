import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Connector } from '../src/connectors/connector.ts'

interface Field {
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  secret?: boolean
  properties?: Record<string, Field>
  required?: string[]
}

const rowsOf = ({ properties = {}, required = [] }: Field, above = ''): string[] =>
  Object.entries(properties).flatMap(([key, field]) => {
    const path = above + key
    const preset = required.includes(key) ? 'required' : field.default === undefined ? 'none' : shown(field.default)
    return [`| \`${path}\` | ${preset} | ${meaningOf(path, field)} |`, ...rowsOf(field, `${path}.`)]
  })

const shown = (value: unknown) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text === '' || text === '{}' ? 'none' : `\`${text}\``
}

const meaningOf = (path: string, { description, enum: choices, const: only, properties, secret }: Field) => {
  if (description === undefined) throw new Error(`${path} has no description in its schema`)
  const values = choices ?? (only === undefined ? [] : [only])
  const said = [
    description,
    values.length > 0 && values.map(shown).join(', '),
    secret && properties === undefined && 'Secret: never shown again',
  ]
  return said
    .filter((part) => typeof part === 'string')
    .map((part) => part.replaceAll('|', '\\|'))
    .join('. ')
}

const tableOf = (schema: z.ZodType) =>
  [
    '| key | default | meaning |',
    '|---|---|---|',
    ...rowsOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Field),
    '',
  ].join('\n')

const folder = new URL('connectors/', import.meta.url)

/** The page of each connector, its tables of config and credentials made anew from the schemas. */
export const connectorPages = (connectors: readonly Connector[]): Record<string, string> => {
  const pages = readdirSync(folder).filter((name) => name !== 'README.md')
  const missing = pages.find((page) => !connectors.some(({ kind }) => page === `${kind}.md`))
  if (missing !== undefined) throw new Error(`docs/connectors/${missing} is about no connector`)
  return Object.fromEntries(
    connectors.map(({ kind, config, credentials }) => {
      const page = readFileSync(new URL(`${kind}.md`, folder), 'utf8')
      return [`docs/connectors/${kind}.md`, withTable(withTable(page, 'config', tableOf(config)), 'credentials', tableOf(credentials))]
    }),
  )
}

const withTable = (page: string, name: string, table: string) => {
  const begin = `<!-- ${name}: made by npm run docs -->\n`
  const from = page.indexOf(begin) + begin.length
  const to = page.indexOf('<!-- end -->', from)
  if (from < begin.length || to < 0) throw new Error(`there is no place for the table of ${name}: ${page.slice(0, 20)}`)
  return page.slice(0, from) + table + page.slice(to)
}
