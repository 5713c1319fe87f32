import { createHash, randomUUID, type Hash } from 'node:crypto'
import { keptMaxBytes, startDouble, textOf, type DoubleRequest, type Double, type DoubleResponse } from './double.ts'
import { createEntraDouble } from './entra-double.ts'

interface StoredItem {
  id: string
  path: string
  sizeBytes: number
  sha256: string
  quickXorHash: string
  content: Buffer
  /** Values of columns of the list that belongs to the library. */
  columns: Record<string, unknown>
}

interface Session {
  key: string
  path: string
  replace: boolean
  next: number
  total: number | undefined
  hash: ContentHash
}

/** The digests of a content. */
interface ContentHash {
  sha256: Hash
  /** Register of quickXorHash: each byte is xored into 160 bits, 11 bits after the one before it. The length is xored into the last 64 bits. */
  register: Buffer
  sizeBytes: number
  pieces: Buffer[]
}

const newHash = (): ContentHash => ({ sha256: createHash('sha256'), register: Buffer.alloc(20), sizeBytes: 0, pieces: [] })
const copyOf = ({ sha256, register, sizeBytes, pieces }: ContentHash): ContentHash => ({
  sha256: sha256.copy(),
  register: Buffer.from(register),
  sizeBytes,
  pieces: [...pieces],
})
const add = (hash: ContentHash, bytes: Buffer) => {
  hash.sha256.update(bytes)
  if (hash.sizeBytes <= keptMaxBytes) hash.pieces.push(bytes)
  const { register } = hash
  for (const byte of bytes) {
    const bit = (hash.sizeBytes * 11) % 160
    const word = byte << (bit & 7)
    register[bit >> 3]! ^= word & 0xff
    register[((bit >> 3) + 1) % 20]! ^= word >> 8
    hash.sizeBytes += 1
  }
}
const digestsOf = ({ sha256, register, sizeBytes, pieces }: ContentHash) => {
  const last = register.readBigUInt64LE(12) ^ BigInt(sizeBytes)
  register.writeBigUInt64LE(last, 12)
  return { sizeBytes, sha256: sha256.digest('hex'), quickXorHash: register.toString('base64'), content: Buffer.concat(pieces) }
}

export interface GraphDouble extends Double {
  /** `https://127.0.0.1:PORT` for Entra and Graph. Upload sessions are on another host. */
  rootAt(port?: number): string
  application: { tenantId: string; clientId: string; clientSecret: string }
  scope: string
  siteUrl: string
  /** Items by drive and path, in lower case. */
  items: Map<string, StoredItem>
  sessions: Map<string, Session>
  find(library: string, path: string): StoredItem | undefined
  revokeTokens(): void
}

const KiB = 1024
const partUnit = 320 * KiB
const partMaxBytes = 60 * KiB * KiB
const singleMaxBytes = 4 * KiB * KiB
const site = { host: 'contoso.sharepoint.com', path: '/sites/Finance' }
const siteId = `${site.host},11111111-1111-1111-1111-111111111111,22222222-2222-2222-2222-222222222222`
const columnNames = new Set(['Vendor', 'InvoiceNumber', 'CheckedBy'])
const partRange = /^bytes (\d+)-(\d+)\/(\d+)$/

// Follows Microsoft's support pages. Must not share code with the connector.
const refusedName = (name: string) =>
  name === '' ||
  name.length > 255 ||
  /["*:<>?/\\|]/.test(name) ||
  name !== name.trim() ||
  name.endsWith('.') ||
  name.startsWith('~') ||
  name.toLowerCase().includes('_vti_') ||
  /^(\.lock|desktop\.ini|con|prn|aux|nul|com[0-9]|lpt[0-9])$/i.test(name)

/**
 * Starts a contract double of Microsoft Graph for document libraries, with Entra's token endpoint, written from their
 * documentation, since the services cannot be run for tests. It keeps documents and refuses what
 * the service is documented to refuse. It cannot show where the service differs from its documentation.
 */
export const startGraphDouble = async (certificate: { key: string; cert: string }): Promise<GraphDouble> => {
  const application = { tenantId: 'contoso.example', clientId: 'client-1', clientSecret: 'the-client-secret' }
  const scope = 'https://graph.example/.default'
  const entra = createEntraDouble({ ...application, scope })
  const libraries = ['Documents', 'Invoices & more'].map((name, index) => ({
    id: `b!drive${index}`,
    name,
    webUrl: `https://${site.host}${site.path}/${encodeURIComponent(name)}`,
  }))
  const items = new Map<string, StoredItem>()
  const sessions = new Map<string, Session>()
  const refused = (status: number, code: string, message: string): DoubleResponse => ({
    status,
    json: { error: { code, message, innerError: { date: '2026-11-21T09:00:00' } } },
    headers: { 'request-id': randomUUID() },
  })
  const isFolder = (key: string) => [...items.keys()].some((other) => other.startsWith(`${key}/`))

  const describe = ({ id, path, sizeBytes, quickXorHash }: StoredItem) => ({
    id,
    name: path.split('/').at(-1),
    size: sizeBytes,
    eTag: `"${randomUUID()},1"`,
    file: { hashes: { quickXorHash } },
  })
  const store = (key: string, path: string, hash: ContentHash): DoubleResponse => {
    const before = items.get(key)
    const item = { id: before?.id ?? `01${randomUUID()}`, path, ...digestsOf(hash), columns: before?.columns ?? {} }
    items.set(key, item)
    return { status: before ? 200 : 201, json: describe(item), headers: { 'request-id': randomUUID() } }
  }

  const fileCall = async (request: DoubleRequest, driveId: string, encodedPath: string, action: string): Promise<DoubleResponse> => {
    if (!libraries.some(({ id }) => id === driveId)) return refused(404, 'itemNotFound', 'The resource could not be found.')
    const names = encodedPath.split('/').map(decodeURIComponent)
    const path = names.join('/')
    if (names.some(refusedName) || `${site.path}/Documents/${path}`.length > 400) {
      return refused(400, 'invalidRequest', 'The provided name cannot contain this character or is too long')
    }
    const key = `${driveId}/${path}`.toLowerCase()
    if (isFolder(key)) return refused(409, 'nameAlreadyExists', 'A folder has this name')

    if (request.method === 'GET' && action === '') {
      const item = items.get(key)
      return item ? { status: 200, json: describe(item) } : refused(404, 'itemNotFound', 'The resource could not be found.')
    }
    if (request.method === 'GET' && action === 'content') {
      const item = items.get(key)
      if (!item) return refused(404, 'itemNotFound', 'The resource could not be found.')
      return { status: 302, headers: { location: `https://localhost:${request.url.port}/down/${item.id}?tempauth=key-of-${item.id}` } }
    }
    if (request.method === 'DELETE' && action === '') {
      return items.delete(key) ? { status: 204 } : refused(404, 'itemNotFound', 'The resource could not be found.')
    }
    if (request.method === 'PUT' && action === 'content') {
      const hash = newHash()
      for await (const chunk of request.body as AsyncIterable<Buffer>) add(hash, chunk)
      if (hash.sizeBytes > singleMaxBytes) return refused(413, 'maxFileSizeExceeded', 'Use an upload session')
      if (items.has(key) && request.url.searchParams.get('@microsoft.graph.conflictBehavior') === 'fail') {
        return refused(409, 'nameAlreadyExists', 'The name exists')
      }
      return store(key, path, hash)
    }
    if (request.method === 'POST' && action === 'createUploadSession') {
      const { item } = JSON.parse((await textOf(request.body)) || '{}') as { item?: Record<string, string> }
      const replace = item?.['@microsoft.graph.conflictBehavior'] === 'replace'
      if (items.has(key) && !replace) return refused(409, 'nameAlreadyExists', 'The name exists')
      const id = randomUUID()
      sessions.set(id, { key, path, replace, next: 0, total: undefined, hash: newHash() })
      const uploadUrl = `https://localhost:${request.url.port}/up/${id}?tempauth=key-of-${id}`
      return { status: 200, json: { uploadUrl, expirationDateTime: '2026-11-22T09:00:00Z', nextExpectedRanges: ['0-'] } }
    }
    if (request.method === 'PATCH' && action === 'listItem/fields') {
      const item = items.get(key)
      if (!item) return refused(404, 'itemNotFound', 'The resource could not be found.')
      const columns = JSON.parse((await textOf(request.body)) || '{}') as Record<string, unknown>
      const unknown = Object.keys(columns).find((name) => !columnNames.has(name))
      if (unknown !== undefined) return refused(400, 'invalidRequest', `Field '${unknown}' is not recognized`)
      if (Object.values(columns).some((value) => typeof value !== 'string' || value.length > 255)) {
        return refused(400, 'invalidRequest', 'A single line of text has 255 characters at most')
      }
      Object.assign(item.columns, columns)
      return { status: 200, json: { id: item.id, ...item.columns } }
    }
    return refused(405, 'invalidRequest', 'Not in the double')
  }

  const sessionCall = async ({ method, url, headers, body }: DoubleRequest, id: string): Promise<DoubleResponse> => {
    if (headers.authorization !== undefined) return refused(401, 'unauthenticated', 'The address is its own key')
    const session = sessions.get(id)
    if (!session || url.searchParams.get('tempauth') !== `key-of-${id}`) return refused(404, 'itemNotFound', 'No such upload session')
    const progress = () => ({ expirationDateTime: '2026-11-22T09:00:00Z', nextExpectedRanges: [`${session.next}-`] })
    if (method === 'GET') return { status: 200, json: progress() }
    if (method === 'DELETE') {
      sessions.delete(id)
      return { status: 204 }
    }
    const [first = -1, last = -1, total = -1] =
      partRange
        .exec(headers['content-range'] ?? '')
        ?.slice(1)
        .map(Number) ?? []
    if (method !== 'PUT' || first < 0 || last < first) return refused(400, 'invalidRequest', 'A Content-Range is needed')
    const sizeBytes = last - first + 1
    if (headers['content-length'] !== String(sizeBytes)) return refused(400, 'invalidRequest', 'Content-Length and Content-Range differ')
    if (total <= last || (session.total ?? total) !== total) return refused(400, 'invalidRequest', 'The total has changed')
    if (first !== session.next) return refused(416, 'invalidRange', 'The range was not expected')
    if (last + 1 !== total && sizeBytes % partUnit !== 0) return refused(400, 'invalidRequest', 'Not a multiple of 320 KiB')
    if (sizeBytes >= partMaxBytes) return refused(413, 'invalidRequest', 'More than 60 MiB at once')
    // A part that is cut off must not change the session.
    const hash = copyOf(session.hash)
    for await (const chunk of body as AsyncIterable<Buffer>) add(hash, chunk)
    Object.assign(session, { hash, next: last + 1, total })
    if (session.next < total) return { status: 202, json: progress() }
    if (items.has(session.key) && !session.replace) return refused(409, 'nameAlreadyExists', 'The name exists')
    sessions.delete(id)
    return store(session.key, session.path, hash)
  }

  const answer = async (request: DoubleRequest): Promise<DoubleResponse> => {
    const { method, path, url, headers } = request
    const token = await entra.answer(request)
    if (token) return token
    const session = /^\/up\/([^/]+)$/.exec(path)?.[1]
    if (session) return sessionCall(request, session)
    const downloaded = /^\/down\/([^/]+)$/.exec(path)?.[1]
    if (downloaded) {
      if (headers.authorization !== undefined) return refused(401, 'unauthenticated', 'The address is its own key')
      const item = [...items.values()].find(({ id }) => id === downloaded && url.searchParams.get('tempauth') === `key-of-${id}`)
      return item ? { status: 200, content: item.content } : refused(404, 'itemNotFound', 'The resource could not be found.')
    }
    if (!path.startsWith('/v1.0/')) return refused(404, 'itemNotFound', 'Not in the double')
    if (!entra.accepts(headers.authorization)) return refused(401, 'InvalidAuthenticationToken', 'Access token is empty or has expired.')
    if (method === 'GET' && path === `/v1.0/sites/${site.host}:${site.path}`) return { status: 200, json: { id: siteId } }
    if (method === 'GET' && path === `/v1.0/sites/${siteId}/drives`) {
      // One page for each library.
      const page = Number(url.searchParams.get('$skiptoken') ?? 0)
      const more = page + 1 < libraries.length
      const link = { '@odata.nextLink': `${url.origin}${url.pathname}?$skiptoken=${page + 1}` }
      return { status: 200, json: { value: libraries.slice(page, page + 1), ...(more && link) } }
    }
    // The path is decoded per name: a decoded name may contain a separator.
    const file = /^\/v1\.0\/drives\/([^/]+)\/root:\/(.+?)(?::\/([\w/]+))?$/.exec(url.pathname)
    if (file) return fileCall(request, decodeURIComponent(file[1]!), file[2]!, file[3] ?? '')
    return refused(404, 'itemNotFound', 'The resource could not be found.')
  }

  const double = await startDouble(certificate, answer)
  return {
    ...double,
    rootAt: (port = double.port) => `https://127.0.0.1:${port}`,
    application,
    scope,
    siteUrl: `https://${site.host}${site.path}`,
    items,
    sessions,
    find: (library, path) => items.get(`${libraries.find(({ name }) => name === library)?.id}/${path}`.toLowerCase()),
    revokeTokens: entra.revoke,
  }
}
