import { createHash, generateKeyPairSync, randomUUID, verify, type Hash } from 'node:crypto'
import { keptMaxBytes, startDouble, textOf, type DoubleRequest, type Double, type DoubleResponse } from './double.ts'

interface StoredFile {
  id: string
  name: string
  description?: string
  mimeType: string
  parents: string[]
  appProperties: Record<string, string>
  properties: Record<string, string>
  trashed: boolean
  sizeBytes: number
  sha256: string
  content: Buffer
  owner: string | undefined
}

interface Session {
  fileId: string
  metadata: Partial<StoredFile>
  announced: number
  owner: string | undefined
  next: number
  hash: Hash
  pieces: Buffer[]
  done?: StoredFile
}

export interface DriveDouble extends Double {
  rootAt(port?: number): string
  /** The content of a key file whose `token_uri` is this double. */
  keyFile(port?: number): Record<string, string>
  /** The configuration of an external account, whose token is the text of `source`. */
  externalAccount(source: object, overrides?: object): Record<string, unknown>
  /** What the provider of the workload identity pool accepts as the token of a workload. */
  subjectToken: string
  /** A user that the service account may act for. */
  subject: string
  folders: { shared: string; personal: string; readOnly: string }
  files: Map<string, StoredFile>
  sessions: Map<string, Session>
  /** The number of bytes of the next part that the double stores. Initially all. */
  storeAtMost: { bytes: number }
  /** Whether the answer to the next upload has no digest, because Drive computes it later. Initially not. */
  nextDigest: { isMissing: boolean }
  /** Files that a search does not find, as happens for a while after their creation. */
  unsearchable: Set<string>
  revokeTokens(): void
}

const partUnit = 256 * 1024
const driveId = '0AShared'
const folders = { shared: 'folder-on-shared-drive', personal: 'folder-of-somebody', readOnly: 'folder-to-read' }
const partRange = /^bytes (\d+)-(\d+)\/(\d+)$/

/**
 * Starts a contract double of Google Drive v3 and of Google's token endpoint for service accounts, written from their
 * documentation, since the services cannot be run for tests. It verifies signatures, records length and digest of
 * documents, and refuses what the service is documented to refuse. It cannot show where the service differs from its
 * documentation.
 */
export const startDriveDouble = async (certificate: { key: string; cert: string }): Promise<DriveDouble> => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const privateKey = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const email = 'relay@project.iam.gserviceaccount.example'
  const subject = 'archive@contoso.example'
  // Maps each token to the user that it acts for.
  const tokens = new Map<string, string | undefined>()
  const files = new Map<string, StoredFile>()
  const sessions = new Map<string, Session>()
  const issuedIds = new Set<string>()
  const storeAtMost = { bytes: Infinity }
  const unsearchable = new Set<string>()
  const nextDigest = { isMissing: false }
  const audience = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/relay/providers/cluster'
  const subjectToken = 'token.of-the.workload'
  const federated = new Set<string>()

  const refused = (status: number, reason: string, message: string): DoubleResponse => ({
    status,
    json: { error: { code: status, message, errors: [{ domain: 'global', reason, message }] } },
  })
  const notFound = (id: string) => refused(404, 'notFound', `File not found: ${id}.`)

  const issueToken = async ({ url, headers, body }: DoubleRequest): Promise<DoubleResponse> => {
    const denied = (status: number, error: string, text: string): DoubleResponse => ({ status, json: { error, error_description: text } })
    if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded')) return denied(400, 'invalid_request', 'No form')
    const form = new URLSearchParams(await textOf(body))
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return denied(400, 'unsupported_grant_type', 'Invalid grant')
    const [head = '', payload = '', signature = ''] = (form.get('assertion') ?? '').split('.')
    const part = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>
    if (part(head).alg !== 'RS256') return denied(400, 'invalid_grant', 'Invalid JWT.')
    const { iss, aud, scope, iat, exp, sub } = part(payload)
    if (iss !== email) return denied(400, 'invalid_grant', 'Invalid grant: account not found')
    if (!verify('sha256', Buffer.from(`${head}.${payload}`), pair.publicKey, Buffer.from(signature, 'base64url'))) {
      return denied(400, 'invalid_grant', 'Invalid JWT Signature.')
    }
    const now = Date.now() / 1_000
    if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat > 3_600 || exp < now || iat > now + 60) {
      return denied(400, 'invalid_grant', 'Invalid JWT: Token must be a short-lived token (60 minutes); check your iat and exp values')
    }
    if (aud !== `${url.origin}/token`) return denied(400, 'invalid_grant', 'Invalid JWT: Failed audience check')
    if (scope !== 'https://www.googleapis.com/auth/drive') return denied(400, 'invalid_scope', 'Invalid OAuth scope')
    if (sub !== undefined && sub !== subject) return denied(401, 'unauthorized_client', 'Client is unauthorized to retrieve access tokens')
    const token = `drive-token-${randomUUID()}`
    tokens.set(`Bearer ${token}`, sub)
    return { status: 200, json: { access_token: token, expires_in: 3_599, token_type: 'Bearer' } }
  }

  // RFC 8693, with the parameters of https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token
  const exchange = async ({ body }: DoubleRequest): Promise<DoubleResponse> => {
    const form = new URLSearchParams(await textOf(body))
    const denied = (error: string, text: string): DoubleResponse => ({ status: 400, json: { error, error_description: text } })
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:token-exchange')
      return denied('unsupported_grant_type', 'Invalid grant')
    if (form.get('requested_token_type') !== 'urn:ietf:params:oauth:token-type:access_token')
      return denied('invalid_request', 'Invalid type')
    if (form.get('audience') !== audience) return denied('invalid_target', 'Invalid value for audience.')
    if (form.get('subject_token_type') !== 'urn:ietf:params:oauth:token-type:jwt')
      return denied('invalid_request', 'Invalid subject token type')
    if (form.get('subject_token') === 'expired') return denied('invalid_grant', 'ID Token issued at 1 is stale to sign-in.')
    if (form.get('subject_token') !== subjectToken)
      return denied('invalid_grant', `The given token ${form.get('subject_token')} is not valid`)
    const scope = form.get('scope') ?? ''
    if (!['cloud-platform', 'drive'].some((name) => scope === `https://www.googleapis.com/auth/${name}`))
      return denied('invalid_scope', 'x')
    const token = `drive-token-federated-${randomUUID()}`
    if (scope.endsWith('/drive')) tokens.set(`Bearer ${token}`, undefined)
    else federated.add(`Bearer ${token}`)
    const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token'
    return { status: 200, json: { access_token: token, issued_token_type, token_type: 'Bearer', expires_in: 3_599 } }
  }

  const impersonate = async ({ path, headers, body }: DoubleRequest): Promise<DoubleResponse> => {
    const denied = (status: number, name: string, message: string): DoubleResponse => ({
      status,
      json: { error: { code: status, status: name, message } },
    })
    if (!federated.has(headers.authorization ?? '')) return denied(401, 'UNAUTHENTICATED', 'Request had invalid credentials')
    if (path !== `/v1/projects/-/serviceAccounts/${email}:generateAccessToken`) {
      return denied(403, 'PERMISSION_DENIED', "Permission 'iam.serviceAccounts.getAccessToken' denied")
    }
    const { scope } = JSON.parse((await textOf(body)) || '{}') as { scope?: string[] }
    if (scope?.[0] !== 'https://www.googleapis.com/auth/drive') return denied(400, 'INVALID_ARGUMENT', 'Invalid scope')
    const accessToken = `drive-token-impersonated-${randomUUID()}`
    tokens.set(`Bearer ${accessToken}`, undefined)
    return { status: 200, json: { accessToken, expireTime: new Date(Date.now() + 3_600_000).toISOString() } }
  }

  const folderAnswer = (id: string, allDrives: boolean): DoubleResponse => {
    const onShared = id === folders.shared
    if (!Object.values(folders).includes(id) || (onShared && !allDrives)) return notFound(id)
    return {
      status: 200,
      json: {
        id,
        mimeType: 'application/vnd.google-apps.folder',
        trashed: false,
        ...(onShared && { driveId }),
        capabilities: { canAddChildren: id !== folders.readOnly, canDeleteChildren: true, canTrashChildren: true },
      },
    }
  }
  const fileAnswer = ({ id, sha256, trashed, parents }: StoredFile) => ({ id, sha256Checksum: sha256, trashed, parents })

  const search = (query: URLSearchParams): DoubleResponse => {
    const [, parent = '', key = '', value = ''] =
      /^'([^']+)' in parents and appProperties has \{ key='([^']+)' and value='([^']+)' \} and trashed = false$/.exec(
        query.get('q') ?? '',
      ) ?? []
    if (!parent) return refused(400, 'invalid', 'Invalid Value')
    const seesShared =
      query.get('supportsAllDrives') === 'true' &&
      query.get('includeItemsFromAllDrives') === 'true' &&
      query.get('corpora') === 'drive' &&
      query.get('driveId') === driveId
    if (query.get('corpora') === 'drive' && !seesShared) return refused(400, 'invalid', 'driveId and includeItemsFromAllDrives are needed')
    const found = [...files.values()].filter(
      (file) =>
        file.parents.includes(parent) &&
        file.appProperties[key] === value &&
        !file.trashed &&
        !unsearchable.has(file.id) &&
        (parent !== folders.shared || seesShared),
    )
    return { status: 200, json: { files: found.map(fileAnswer) } }
  }

  const refusedProperties = ({ appProperties, properties }: Partial<StoredFile>): DoubleResponse | undefined => {
    const pairs = [...Object.entries(appProperties ?? {}), ...Object.entries(properties ?? {})]
    const isTooLong = pairs.some(([key, value]) => Buffer.byteLength(key + value) > 124)
    return isTooLong ? refused(400, 'propertyTooLong', 'Properties have 124 bytes at most') : undefined
  }

  const change = async ({ url, body, headers }: DoubleRequest, id: string): Promise<DoubleResponse> => {
    if (!headers['content-type']?.startsWith('application/json')) return refused(400, 'badContent', 'Metadata must be JSON')
    const file = files.get(id)
    if (!file || (file.parents.includes(folders.shared) && url.searchParams.get('supportsAllDrives') !== 'true')) return notFound(id)
    const metadata = JSON.parse((await textOf(body)) || '{}') as Partial<StoredFile>
    const tooLong = refusedProperties(metadata)
    if (tooLong) return tooLong
    Object.assign(file.properties, metadata.properties)
    if (metadata.trashed !== undefined) file.trashed = metadata.trashed
    return { status: 200, json: fileAnswer(file) }
  }

  const begin = async (
    { url, body, headers }: DoubleRequest,
    fileId: string | undefined,
    owner: string | undefined,
  ): Promise<DoubleResponse> => {
    if (!headers['content-type']?.startsWith('application/json')) return refused(400, 'badContent', 'Metadata must be JSON')
    const metadata = JSON.parse((await textOf(body)) || '{}') as Partial<StoredFile>
    const allDrives = url.searchParams.get('supportsAllDrives') === 'true'
    const known = fileId === undefined ? undefined : files.get(fileId)
    if (fileId !== undefined && !known) return notFound(fileId)
    if (known && (metadata.parents || metadata.id)) return refused(403, 'fieldNotWritable', 'parents and id cannot be changed')
    const parent = known?.parents[0] ?? metadata.parents?.[0] ?? 'root'
    const folder = folderAnswer(parent, allDrives)
    if (folder.status !== 200) return folder
    if (parent === folders.readOnly) return refused(403, 'insufficientFilePermissions', 'The user does not have sufficient permissions')
    if (metadata.id !== undefined && !issuedIds.has(metadata.id)) return refused(400, 'invalid', 'The provided file ID is not usable.')
    if (metadata.id !== undefined && files.has(metadata.id))
      return refused(409, 'fileIdInUse', 'A file already exists with the provided ID.')
    const tooLong = refusedProperties(metadata)
    if (tooLong) return tooLong
    if (metadata.mimeType?.startsWith('application/vnd.google-apps')) return refused(400, 'badRequest', 'The document would be converted')
    if (parent !== folders.shared && owner === undefined) {
      return refused(
        403,
        'storageQuotaExceeded',
        'Service Accounts do not have storage quota. Leverage shared drives, or use OAuth delegation.',
      )
    }
    const id = randomUUID()
    sessions.set(id, {
      fileId: fileId ?? metadata.id ?? randomUUID(),
      metadata,
      announced: Number(headers['x-upload-content-length'] ?? -1),
      owner,
      next: 0,
      hash: createHash('sha256'),
      pieces: [],
    })
    const location = `https://localhost:${url.port}/upload/drive/v3/files?uploadType=resumable&upload_id=${id}`
    return { status: 200, headers: { location } }
  }

  const upload = async ({ method, headers, body }: DoubleRequest, id: string): Promise<DoubleResponse> => {
    const session = sessions.get(id)
    if (!session) return refused(404, 'notFound', 'No such upload')
    if (method === 'DELETE') {
      sessions.delete(id)
      return { status: 499 }
    }
    if (session.done) return { status: 200, json: fileAnswer(session.done) }
    const incomplete = (): DoubleResponse => ({ status: 308, headers: session.next > 0 ? { range: `bytes=0-${session.next - 1}` } : {} })
    const contentRange = headers['content-range']
    if (method !== 'PUT') return refused(405, 'badRequest', 'Use PUT')
    if (contentRange !== undefined && /^bytes \*\/(\d+|\*)$/.test(contentRange)) return incomplete()
    const length = Number(headers['content-length'] ?? -1)
    // A whole document needs no Content-Range.
    const range = contentRange === undefined ? [0, length - 1, length] : partRange.exec(contentRange)?.slice(1).map(Number)
    const [first = -1, last = -2, total = -1] = range ?? []
    if (!range || length !== last - first + 1) return refused(400, 'badRequest', 'Content-Range and Content-Length differ')
    if (session.announced !== total) return refused(400, 'badRequest', 'The total differs from X-Upload-Content-Length')
    if (first !== session.next) return refused(503, 'backendError', 'The range was not expected')
    if (last + 1 < total && length % partUnit !== 0) return refused(400, 'badRequest', 'Not a multiple of 256 KiB')
    // A part that is cut off must not change the session.
    const hash = session.hash.copy()
    const pieces = [...session.pieces]
    let stored = 0
    const maxBytes = last + 1 < total ? storeAtMost.bytes : Infinity
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const head = chunk.subarray(0, maxBytes - stored)
      hash.update(head)
      if (session.next + stored <= keptMaxBytes) pieces.push(head)
      stored += head.length
    }
    storeAtMost.bytes = Infinity
    Object.assign(session, { hash, pieces, next: session.next + stored })
    if (session.next < total) return incomplete()
    const before = files.get(session.fileId)
    const { metadata } = session
    session.done = {
      id: session.fileId,
      name: metadata.name ?? before?.name ?? 'Untitled',
      ...(metadata.description !== undefined && { description: metadata.description }),
      mimeType: metadata.mimeType ?? before?.mimeType ?? 'application/octet-stream',
      parents: before?.parents ?? metadata.parents ?? ['root'],
      appProperties: { ...before?.appProperties, ...metadata.appProperties },
      properties: { ...before?.properties, ...metadata.properties },
      trashed: before?.trashed ?? false,
      sizeBytes: total,
      sha256: hash.digest('hex'),
      content: Buffer.concat(pieces),
      owner: session.owner,
    }
    files.set(session.fileId, session.done)
    const { sha256Checksum, ...described } = fileAnswer(session.done)
    const json = nextDigest.isMissing ? described : { ...described, sha256Checksum }
    nextDigest.isMissing = false
    return { status: before ? 200 : 201, json }
  }

  const answer = async (request: DoubleRequest): Promise<DoubleResponse> => {
    const { method, path, url, headers } = request
    if (method === 'POST' && path === '/token') return issueToken(request)
    if (method === 'POST' && path === '/v1/token') return exchange(request)
    if (method === 'POST' && path.startsWith('/v1/projects/-/serviceAccounts/')) return impersonate(request)
    const uploadId = url.searchParams.get('upload_id')
    if (path === '/upload/drive/v3/files' && uploadId) return upload(request, uploadId)
    if (!tokens.has(headers.authorization ?? '')) return refused(401, 'authError', 'Invalid Credentials')
    const owner = tokens.get(headers.authorization ?? '')
    const resumable = url.searchParams.get('uploadType') === 'resumable'
    const updated = /^\/upload\/drive\/v3\/files\/([^/]+)$/.exec(path)?.[1]
    if (method === 'POST' && path === '/upload/drive/v3/files' && resumable) return begin(request, undefined, owner)
    if (method === 'PATCH' && updated && resumable) return begin(request, updated, owner)
    const changed = /^\/drive\/v3\/files\/([^/]+)$/.exec(path)?.[1]
    if (method === 'PATCH' && changed) return change(request, changed)
    if (method === 'DELETE' && changed) return files.delete(changed) ? { status: 204 } : notFound(changed)
    if (method !== 'GET') return refused(400, 'badRequest', 'Not in the double')
    if (path === '/drive/v3/files') return search(url.searchParams)
    if (path === '/drive/v3/files/generateIds') {
      const ids = Array.from({ length: Number(url.searchParams.get('count') ?? 10) }, () => `1${randomUUID()}`)
      for (const id of ids) issuedIds.add(id)
      return { status: 200, json: { kind: 'drive#generatedIds', space: 'drive', ids } }
    }
    const id = /^\/drive\/v3\/files\/([^/]+)$/.exec(path)?.[1] ?? ''
    const allDrives = url.searchParams.get('supportsAllDrives') === 'true'
    const file = files.get(id)
    const isContent = url.searchParams.get('alt') === 'media'
    if (!file) return isContent ? notFound(id) : folderAnswer(id, allDrives)
    if (file.parents.includes(folders.shared) && !allDrives) return notFound(id)
    return isContent ? { status: 200, content: file.content } : { status: 200, json: fileAnswer(file) }
  }

  const double = await startDouble(certificate, answer)
  const rootAt = (port = double.port) => `https://127.0.0.1:${port}`
  return {
    ...double,
    rootAt,
    keyFile: (port) => ({
      type: 'service_account',
      project_id: 'project',
      private_key_id: 'key-1',
      private_key: privateKey,
      client_email: email,
      client_id: '1',
      token_uri: `${rootAt(port)}/token`,
      universe_domain: 'googleapis.com',
    }),
    externalAccount: (source, overrides = {}) => ({
      type: 'external_account',
      universe_domain: 'googleapis.com',
      audience,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: 'https://sts.googleapis.com/v1/token',
      service_account_impersonation_url: `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${email}:generateAccessToken`,
      credential_source: source,
      ...overrides,
    }),
    subjectToken,
    subject,
    folders,
    files,
    sessions,
    storeAtMost,
    unsearchable,
    nextDigest,
    revokeTokens: () => tokens.clear(),
  }
}
