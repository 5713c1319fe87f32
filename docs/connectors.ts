import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { blobFinalAnswers } from '../src/connectors/blob/errors.ts'
import type { Connector } from '../src/connectors/connector.ts'
import { directoryFinalAnswers } from '../src/connectors/directory/errors.ts'
import { driveFinalAnswers } from '../src/connectors/drive/errors.ts'
import { emailFinalAnswers, passingWords } from '../src/connectors/email/errors.ts'
import { objstoreFinalAnswers } from '../src/connectors/objstore/errors.ts'
import type { FinalAnswer } from '../src/connectors/shared/final-answers.ts'
import { teamsiteFinalAnswers } from '../src/connectors/teamsite/errors.ts'
import { webhookFinalAnswers } from '../src/connectors/webhook/errors.ts'
import { markdownTable, withGenerated } from './generated-table.ts'
import { namesTable } from './names.ts'

interface Field {
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  secret?: boolean
  masked?: boolean
  properties?: Record<string, Field>
  required?: string[]
}

const rowsOf = ({ properties = {}, required = [] }: Field, boundKeys: readonly string[], above = ''): string[][] =>
  Object.entries(properties).flatMap(([key, field]) => {
    const path = above + key
    const preset = required.includes(key) ? 'required' : field.default === undefined ? 'none' : displayed(field.default)
    const meaning = meaningOf(path, field, boundKeys.includes(path))
    return [[`\`${path}\``, preset, meaning], ...rowsOf(field, boundKeys, `${path}.`)]
  })

const displayed = (value: unknown) => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text === '' || text === '{}' ? 'none' : `\`${text}\``
}

const meaningOf = (path: string, { description, enum: choices, const: only, properties, secret, masked }: Field, isBound: boolean) => {
  if (description === undefined) throw new Error(`${path} has no description in its schema`)
  const values = choices ?? (only === undefined ? [] : [only])
  const sentences = [
    description,
    values.length > 0 && values.map(displayed).join(', '),
    secret && properties === undefined && 'Secret: never shown again',
    masked && 'Masked for viewers',
    isBound && 'A change needs the credentials again',
  ]
  return sentences
    .filter((part) => typeof part === 'string')
    .map((part) => part.replaceAll('|', '\\|'))
    .join('. ')
}

const tableOf = (schema: z.ZodType, boundKeys: readonly string[] = []) => {
  const rows = rowsOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Field, boundKeys)
  return `\n${rows.length > 0 ? markdownTable(['key', 'default', 'meaning'], rows) : 'None: send an empty object, `{}`.\n'}`
}

const exampleOf = ({ kind, example }: Connector) =>
  `\n\`\`\`json\n${JSON.stringify({ connector_type: kind, ...example }, null, 2)}\n\`\`\`\n`

const folder = new URL('connectors/', import.meta.url)
const pageOf = (kind: string) => readFileSync(new URL(`${kind}.md`, folder), 'utf8')

/** Returns a line of a connector's page, for example `**Target:** SFTP servers`, without its label. */
const labelled = (kind: string, label: string): string => {
  const text = new RegExp(`^\\*\\*${label}:\\*\\* (.+)$`, 'm').exec(pageOf(kind))?.[1]
  if (text === undefined) throw new Error(`docs/connectors/${kind}.md has no line **${label}:**`)
  return text
}

const withKinds = (page: string, kinds: string[]) => {
  const rows = kinds.map((kind) => [`[${kind}](${kind}.md)`, labelled(kind, 'Target'), labelled(kind, 'Tested against')])
  return withGenerated(page, 'kinds', `\n${markdownTable(['kind', 'target', 'tested against'], rows)}`)
}

/** What targets say that no time changes, by kind. The page of each has a place for its table. */
const finalAnswers = new Map<string, readonly FinalAnswer[]>([
  ['objstore', objstoreFinalAnswers],
  ['blob', blobFinalAnswers],
  ['teamsite', teamsiteFinalAnswers],
  ['drive', driveFinalAnswers],
  ['webhook', webhookFinalAnswers],
  ['email', emailFinalAnswers],
  ['directory', directoryFinalAnswers],
])

const withFinalAnswers = (page: string, kind: string): string => {
  const answers = finalAnswers.get(kind)
  if (!answers) return page
  const byMeaning = new Map<string, string[]>()
  let last = ''
  for (const { answer, meaning } of answers) {
    if (meaning !== 'the same') last = meaning
    byMeaning.set(last, [...(byMeaning.get(last) ?? []), answer])
  }
  const rows = [...byMeaning].map(([meaning, same]) => [same.join(', '), meaning])
  return withGenerated(page, 'final answers', `\n${markdownTable(['answer', 'meaning'], rows)}`)
}

/** Returns the page of mailboxes with the words by which a mail server says that a refusal passes. */
const withPassingWords = (page: string): string => {
  const rows = passingWords.map(({ meaning, words: { source } }) => [meaning, `\`${source.replaceAll('|', '\\|')}\``])
  return withGenerated(page, 'words', `\n${markdownTable(['what the server speaks of', 'words (regular expression)'], rows)}`)
}

/**
 * Returns every page that lists the connectors or their settings, with its generated parts.
 * @throws Error if a kind has no page
 */
export const connectorPages = (connectors: readonly Connector[]): Record<string, string> => {
  const kinds = connectors.map(({ kind }) => kind)
  const stray = readdirSync(folder).find((name) => name !== 'README.md' && !kinds.includes(name.replace(/\.md$/, '')))
  if (stray !== undefined) throw new Error(`docs/connectors/${stray} describes no registered connector`)
  const settings = connectors.map((connector): [string, string] => {
    const { kind, config, credentials, boundKeys } = connector
    const withTables = withGenerated(withGenerated(pageOf(kind), 'config', tableOf(config, boundKeys)), 'credentials', tableOf(credentials))
    return [`docs/connectors/${kind}.md`, withFinalAnswers(withGenerated(withTables, 'example', exampleOf(connector)), kind)]
  })
  const described = Object.fromEntries(settings)
  return {
    ...described,
    'docs/connectors/email.md': withPassingWords(described['docs/connectors/email.md']!),
    'docs/connectors/README.md': withGenerated(withKinds(pageOf('README'), kinds), 'names', `\n${namesTable()}`),
  }
}
