import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isAlias, isMap, isNode, isScalar, isSeq, parseDocument, type Document } from 'yaml'
import { z } from 'zod'
import { AppError, messageOf, UserError, type ErrorDetail } from '../../base/errors.ts'
import { plainMessages } from '../../base/issue-messages.ts'
import { detailsOf } from '../../base/refusals.ts'
import { isStorable } from '../../base/text.ts'
import { readReference, reference, type Reference } from '../../config/references.ts'
import type { Connector } from '../../connectors/connector.ts'
import type { FindConnector } from '../../connectors/connector.ts'
import { rfcCredentials, rfcFields } from '../../domain/rfc-settings.ts'
import { upstreamFields, type UpstreamSecrets } from '../../domain/upstream.ts'
import { enrichmentCredentials } from '../../enrichment/settings.ts'
import { checkTarget, connectorOf, requireEncryptedBridge, requireEncryption, type ProbeDeps } from '../../routing/targets.ts'
import { readGivenKey, type KeyDigest } from '../../security/api-keys.ts'
import { destinationInFile, references, workspacesFile, type WantedRepository, type WantedWorkspace } from './workspaces-file.ts'

export interface FileDeps extends Pick<ProbeDeps, 'outbound' | 'config'> {
  findConnector: FindConnector
  variables: NodeJS.ProcessEnv
}

export interface ReadFile {
  workspaces: WantedWorkspace[]
  /** Returns the refusal of the file, with every issue, its line, and the name of the object. */
  refuse(issues: readonly ErrorDetail[]): UserError
}

/** What identifies an object of a list, for people. */
const identities: Record<string, { noun: string; key: string }> = {
  members: { noun: 'member', key: 'email' },
  api_keys: { noun: 'API key', key: 'name' },
  repositories: { noun: 'repository', key: 'repo_id' },
  destinations: { noun: 'destination', key: 'name' },
  connections: { noun: 'connection', key: 'name' },
  enrichments: { noun: 'enrichment', key: 'name' },
  notifications: { noun: 'notification', key: 'name' },
  event_subscriptions: { noun: 'event subscription', key: 'name' },
}

/** Returns a path as people read it: `acme/prod, destination DMS, config.url` for `workspaces.0.destinations.1.config.url`. */
const describePath = (value: unknown, path: string): string => {
  const [root = '', index = '', ...inner] = path.split('.')
  const workspace = fieldOf(fieldOf(value, root), index)
  const slug = fieldOf(workspace, 'slug')
  const [list = '', position = '', ...rest] = inner
  const { noun, key = '' } = identities[list] ?? {}
  const name = fieldOf(fieldOf(fieldOf(workspace, list), position), key)
  const object = typeof name === 'string' && noun !== undefined ? [`${noun} ${name}`, formatKeys(rest)] : [formatKeys(inner)]
  const parts = typeof slug === 'string' ? [slug, ...object] : [formatKeys(path.split('.'))]
  return parts.filter(Boolean).join(', ') || 'the file'
}

/** Returns keys as people read them: `repositories[1]`. */
const formatKeys = (keys: string[]) => keys.join('.').replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]')

/** Returns where a value begins in the text; if it is missing, what should contain it. */
const offsetOf = (document: Document, path: string): number => {
  let offset = 0
  let node: unknown = document.contents
  for (const segment of path.split('.')) {
    if (isAlias(node)) node = node.resolve(document)
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === segment)
      offset = isScalar(pair?.key) ? (pair.key.range?.[0] ?? offset) : offset
      next = pair?.value
    } else if (isSeq(node)) {
      next = node.items[Number(segment)]
      offset = isNode(next) ? (next.range?.[0] ?? offset) : offset
    }
    node = next
  }
  return offset
}

const lineOf = (text: string, offset: number) => text.slice(0, offset).split('\n').length

const createRefusal =
  ({ file, text, document, value }: ReadText) =>
  (issues: readonly ErrorDetail[]): UserError => {
    const lines = issues
      .map(({ path, message }) => ({ line: lineOf(text, offsetOf(document, path)), text: `${describePath(value, path)}: ${message}` }))
      .toSorted((one, other) => one.line - other.line)
      .map((issue) => `  line ${issue.line}: ${issue.text}`)
    return new UserError([`${file} cannot be applied, and nothing was changed:`, ...lines].join('\n'))
  }

/** Returns the issues that an `AppError` reports, with their paths in the file. Throws any other error again. */
export const issuesOf = (thrown: unknown, at: string): ErrorDetail[] => {
  if (!(thrown instanceof AppError)) throw thrown
  // The file names the destination of a notification, the API its id.
  return (
    thrown.details?.map(({ path, message }) => ({
      path: `${at}.${path.replace(/^destination_id$/, 'destination').replace(/^home_destination_id$/, 'home')}`,
      message,
    })) ?? [{ path: at, message: thrown.message }]
  )
}

/**
 * Reads the file of `relay apply` and the values that it refers to, and checks what can be checked without the database.
 * @throws `UserError` with every issue that was found
 */
export const readWorkspacesFile = async (file: string, deps: FileDeps): Promise<ReadFile> => {
  const read = await readYaml(file)
  const { value } = read
  const refuse = createRefusal(read)
  const issues: ErrorDetail[] = []
  const parsed = workspacesFile.safeParse(value, plainMessages)
  if (!parsed.success) issues.push(...detailsOf(parsed.error.issues))

  // The parts are checked one by one, because an issue in one of them must not hide those in the others.
  const values = createReferences(dirname(resolve(file)), deps.variables, issues)
  const credentials = new Map<string, Record<string, unknown>>()
  const keys = new Map<string, KeyDigest>()
  const workspaces = listOf(value, 'workspaces')
  issues.push(...findRepeated(workspaces, 'workspaces', ['slug']))
  for (const [index, each] of workspaces.entries()) {
    const at = `workspaces.${index}`
    issues.push(...namesIn(each, at))
    for (const [position, item] of listOf(each, 'destinations').entries()) {
      const path = `${at}.destinations.${position}`
      credentials.set(path, await readTarget(item, path, { ...deps, workspace: String(fieldOf(each, 'slug')), values, issues }))
    }
    for (const [position, item] of listOf(each, 'repositories').entries()) {
      const path = `${at}.repositories.${position}.upstream`
      credentials.set(path, await readUpstreamSecrets(fieldOf(item, 'upstream'), path, { values, issues }))
    }
    for (const [position, item] of listOf(each, 'enrichments').entries()) {
      const path = `${at}.enrichments.${position}`
      const given = z.object({ credentials: references }).safeParse(item)
      credentials.set(path, (given.success && (await values(given.data.credentials, `${path}.credentials`, enrichmentCredentials))) || {})
    }
    for (const [position, item] of listOf(each, 'api_keys').entries()) {
      const path = `${at}.api_keys.${position}`
      const key = await readKeyValue(item, path, values)
      if (!key) continue
      if ('message' in key) issues.push({ path: `${path}.value`, message: key.message })
      else keys.set(path, key)
    }
    const bridge = z.object({ settings: z.object({ rfc: rfcFields.pick({ url: true }).loose() }) }).safeParse(each)
    await requireEncryptedBridge(deps, bridge.data?.settings.rfc.url).catch((thrown: unknown) => {
      issues.push(...issuesOf(thrown, `${at}.settings`))
    })
    const path = `${at}.settings.rfc.credentials`
    const found = z.object({ settings: z.object({ rfc: z.object({ credentials: references }) }) }).safeParse(each)
    if (!found.success) continue
    const opened = await values(found.data.settings.rfc.credentials, path, rfcCredentials)
    if (!opened) continue
    credentials.set(path, opened)
    const checked = rfcCredentials.safeParse(opened, plainMessages)
    if (!checked.success) issues.push(...detailsOf(checked.error.issues, [path]))
  }
  if (issues.length > 0 || !parsed.success) throw refuse(removeRepeated(issues))

  const wanted = parsed.data.workspaces.map(({ settings: { rfc: wantedRfc, ...settings }, ...rest }, index) => {
    const at = `workspaces.${index}`
    const { credentials: from, ...bridge } = wantedRfc ?? {}
    const withValues = from ? { ...bridge, credentials: rfcCredentials.parse(credentials.get(`${at}.settings.rfc.credentials`)) } : bridge
    return {
      ...rest,
      settings: { ...settings, ...(wantedRfc !== undefined && { rfc: wantedRfc === null ? null : withValues }) },
      api_keys: rest.api_keys.map((each, position) => ({ ...each, value: keys.get(`${at}.api_keys.${position}`) })),
      destinations: rest.destinations.map((each, position) => ({
        ...each,
        credentials: credentials.get(`${at}.destinations.${position}`)!,
      })),
      repositories: rest.repositories.map((each, position) => ({
        ...each,
        upstream:
          each.upstream &&
          ({
            ...each.upstream,
            private_key: undefined,
            ...(credentials.get(`${at}.repositories.${position}.upstream`) as UpstreamSecrets),
          } as WantedRepository['upstream']),
      })),
      enrichments: rest.enrichments.map((each, position) => ({
        ...each,
        credentials: credentials.get(`${at}.enrichments.${position}`)!,
      })),
    }
  })
  return { workspaces: wanted, refuse }
}

interface ReadText {
  file: string
  text: string
  document: Document
  value: unknown
}

const readYaml = async (file: string): Promise<ReadText> => {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (thrown) {
    throw new UserError(`${file} cannot be read: ${messageOf(thrown)}`, { cause: thrown })
  }
  // The excerpt that `prettyErrors` adds to a message could contain a secret that was written into the file.
  const document = parseDocument(text, { prettyErrors: false })
  if (document.errors.length === 0) return { file, text, document, value: valueOfDocument(document, file) }
  const lines = document.errors.map(({ pos, message }) => `  line ${lineOf(text, pos[0])}: ${message}`)
  throw new UserError([`${file} is not valid YAML:`, ...lines].join('\n'))
}

const valueOfDocument = (document: Document, file: string): unknown => {
  let value: unknown
  try {
    value = document.toJS()
  } catch (thrown) {
    throw new UserError(`${file} has an alias without an anchor, or too many aliases.`, { cause: thrown })
  }
  if (!isStorableValue(value)) throw new UserError(`${file} contains a NUL character or an unpaired surrogate.`)
  return value
}

const isStorableValue = (value: unknown): boolean => {
  if (typeof value === 'string') return isStorable(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, inner]) => isStorable(key) && isStorableValue(inner))
}

const removeRepeated = (issues: ErrorDetail[]) => [...new Map(issues.map((issue) => [`${issue.path}: ${issue.message}`, issue])).values()]

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined

const listOf = (value: unknown, key: string): unknown[] => {
  const list = fieldOf(value, key)
  return Array.isArray(list) ? list : []
}

/** Returns an issue for each item whose key fields are those of an item before it. */
const findRepeated = (items: unknown[], at: string, keys: string[]): ErrorDetail[] => {
  const seen = new Set<string>()
  return items.flatMap((item, index) => {
    const values = keys.map((key) => fieldOf(item, key))
    const key = JSON.stringify(values)
    const isRepeated = typeof values[0] === 'string' && seen.has(key)
    seen.add(key)
    return isRepeated ? [{ path: `${at}.${index}.${keys[0]!}`, message: 'is used by an item before this one' }] : []
  })
}

/** Returns the issues of the names of a workspace: those that are used twice, and those that nothing in the file has. */
const namesIn = (item: unknown, at: string): ErrorDetail[] => {
  const namesOf = (list: string, key: string) => new Set(listOf(item, list).map((each) => fieldOf(each, key)))
  const [members, repositories, destinations] = [
    namesOf('members', 'email'),
    namesOf('repositories', 'repo_id'),
    namesOf('destinations', 'name'),
  ]
  const unknown = (found: unknown, known: Set<unknown>, noun: string, path: string) =>
    typeof found !== 'string' || known.has(found)
      ? []
      : [{ path, message: `this workspace of the file has no ${noun} ${JSON.stringify(found)}` }]
  return [
    ...findRepeated(listOf(item, 'members'), `${at}.members`, ['email']),
    ...findRepeated(listOf(item, 'api_keys'), `${at}.api_keys`, ['name', 'level', 'member']),
    ...findRepeated(listOf(item, 'repositories'), `${at}.repositories`, ['repo_id']),
    ...(['destinations', 'connections', 'enrichments', 'notifications', 'event_subscriptions'] as const).flatMap((list) =>
      findRepeated(listOf(item, list), `${at}.${list}`, ['name']),
    ),
    ...listOf(item, 'api_keys').flatMap((each, index) =>
      unknown(fieldOf(each, 'member'), members, 'member', `${at}.api_keys.${index}.member`),
    ),
    ...listOf(item, 'connections').flatMap((each, index) => [
      ...listOf(each, 'repositories').flatMap((found, position) =>
        unknown(found, repositories, 'repository', `${at}.connections.${index}.repositories.${position}`),
      ),
      ...listOf(each, 'destinations').flatMap((found, position) =>
        unknown(found, destinations, 'destination', `${at}.connections.${index}.destinations.${position}`),
      ),
    ]),
    ...listOf(item, 'enrichments').flatMap((each, index) =>
      listOf(each, 'repositories').flatMap((found, position) =>
        unknown(found, repositories, 'repository', `${at}.enrichments.${index}.repositories.${position}`),
      ),
    ),
    ...(['notifications', 'event_subscriptions'] as const).flatMap((list) =>
      listOf(item, list).flatMap((each, index) =>
        unknown(fieldOf(each, 'destination'), destinations, 'destination', `${at}.${list}.${index}.destination`),
      ),
    ),
  ]
}

type ReadReferences = ReturnType<typeof createReferences>

/** Returns a function that reads the values of references. It returns undefined, and adds issues, if a value is missing. */
const createReferences = (folder: string, variables: NodeJS.ProcessEnv, issues: ErrorDetail[]) => {
  return async (from: z.output<typeof references>, at: string, schema: z.ZodType): Promise<Record<string, unknown> | undefined> => {
    const values: Record<string, unknown> = {}
    let isComplete = true
    for (const [key, each] of Object.entries(from)) {
      const found = await readReference(each, folder, variables)
      const value = 'text' in found ? valueOf(schema, key, found.text) : found
      if ('message' in value) issues.push({ path: `${at}.${key}`, message: value.message })
      else values[key] = value.value
      isComplete &&= 'value' in value
    }
    return isComplete ? values : undefined
  }
}

/** Returns a value of the credentials. An object, such as the key file of a service account, is parsed as JSON. */
const valueOf = (schema: z.ZodType, key: string, text: string): { value: unknown } | { message: string } => {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const expected = properties[key]
  if (typeof expected !== 'object' || expected.type !== 'object') return { value: text }
  try {
    return { value: JSON.parse(text) }
  } catch {
    // The message of the parser quotes the text.
    return { message: 'the value that it refers to must be JSON' }
  }
}

/** Reads the value of an API key. @returns undefined if the file refers to none, or if it is missing, which is an issue already */
const readKeyValue = async (item: unknown, at: string, values: ReadReferences): Promise<ReturnType<typeof readGivenKey> | undefined> => {
  const parsed = z.object({ value: reference }).safeParse(item)
  if (!parsed.success) return undefined
  const read = await values(parsed.data, at, z.object({ value: z.string() }))
  return read && readGivenKey(String(read['value']))
}

/** Reads the credentials of a destination, and adds every issue of its config and credentials. */
const readTarget = async (
  item: unknown,
  at: string,
  { values, issues, findConnector, workspace, ...probe }: FileDeps & { workspace: string; values: ReadReferences; issues: ErrorDetail[] },
): Promise<Record<string, unknown>> => {
  const parsed = destinationInFile.safeParse(item)
  if (!parsed.success) return {}
  const { connector_type: type, config, credentials: from } = parsed.data
  try {
    const connector: Connector = connectorOf(findConnector, type)
    const credentials = await values(from, `${at}.credentials`, connector.credentials)
    checkTarget(connector, { config, credentials }, workspace)
    if (!credentials) return {}
    await requireEncryption(probe, connector, { config, credentials })
    return credentials
  } catch (thrown) {
    issues.push(...issuesOf(thrown, at))
    return {}
  }
}

/** Reads the values of an upstream that are references, and adds every issue. */
const readUpstreamSecrets = async (
  item: unknown,
  at: string,
  { values, issues }: { values: ReadReferences; issues: ErrorDetail[] },
): Promise<Record<string, unknown>> => {
  const from: Record<string, Reference> = {}
  for (const key of ['private_key', 'proxy_url']) {
    const given = reference.safeParse(fieldOf(item, key))
    if (given.success) from[key] = given.data
  }
  const read = (await values(from, at, z.object({}))) ?? {}
  const checked = upstreamFields.shape.proxy_url.safeParse(read['proxy_url'], plainMessages)
  if (!checked.success) issues.push(...detailsOf(checked.error.issues, [`${at}.proxy_url`]))
  return read
}
