import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { startAzurite } from '../test/support/azurite.ts'
import { createAuthority } from '../test/support/certificates.ts'
import { startDriveDouble } from '../test/support/drive-double.ts'
import { startGraphDouble } from '../test/support/graph-double.ts'
import { startHttpTarget, type HttpTarget } from '../test/support/http-target.ts'
import { startS3Server } from '../test/support/s3-server.ts'
import { startMailServer, type MailServer } from '../test/support/smtp-server.ts'
import { startSshd } from '../test/support/sshd.ts'
import { startProxy, type Proxy } from './proxy.ts'
import type { Routes } from './reroute.ts'

/** A document at a target. */
interface Holding {
  docId: string
  sha256: string
}

/** A server that documents are delivered to, with a proxy before it. */
export interface Target {
  kind: Kind
  /** True if the target keeps every message, so that a repetition is a duplicate. At the others, it replaces the first. */
  keepsMessages: boolean
  /** A folder has no network. */
  proxy: Proxy | undefined
  config: object
  credentials: object
  holdings(): Promise<Holding[]>
  clear(): Promise<void>
  stop(): Promise<void>
}

export const kinds = ['objstore', 'blob', 'teamsite', 'drive', 'sftp', 'email', 'webhook', 'directory'] as const
export type Kind = (typeof kinds)[number]

// The load names its documents as the source system does: with 32 hexadecimal digits.
const docIdPattern = /[0-9A-F]{32}/
const docIdIn = (text: string): string => docIdPattern.exec(text)?.[0] ?? text

const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Returns the documents in a folder. Files whose upload is under way have a name of their own. */
const filesIn = async (folder: string): Promise<Holding[]> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('.part'))
  return Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name)
      return { docId: docIdIn(path.slice(folder.length)), sha256: sha256Of(await readFile(path)) }
    }),
  )
}

const clearFolder = async (folder: string) => {
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true })
}

const behindProxy = async (port: number, stopServer: () => Promise<void>) => {
  const proxy = await startProxy(port)
  return {
    proxy,
    stop: async () => {
      await proxy.stop()
      await stopServer()
    },
  }
}

const startObjstore = async (): Promise<Target> => {
  const server = await startS3Server()
  const { client, bucket: Bucket } = server
  const { proxy, stop } = await behindProxy(server.port, server.stop)
  const keys = async () => ((await client.send(new ListObjectsV2Command({ Bucket }))).Contents ?? []).map(({ Key = '' }) => Key)
  return {
    kind: 'objstore',
    keepsMessages: false,
    proxy,
    config: { bucket: Bucket, region: 'us-east-1', endpoint: `http://127.0.0.1:${proxy.port}`, path_style: true },
    credentials: { access_key_id: server.accessKeyId, secret_access_key: server.secretAccessKey },
    holdings: async () => {
      const found: Holding[] = []
      for (const Key of await keys()) {
        const object = await client.send(new GetObjectCommand({ Bucket, Key }))
        found.push({ docId: docIdIn(Key), sha256: sha256Of(await object.Body!.transformToByteArray()) })
      }
      return found
    },
    clear: async () => {
      for (const Key of await keys()) await client.send(new DeleteObjectCommand({ Bucket, Key }))
    },
    stop,
  }
}

const startBlob = async (): Promise<Target> => {
  const server = await startAzurite()
  const { proxy, stop } = await behindProxy(server.port, server.stop)
  return {
    kind: 'blob',
    keepsMessages: false,
    proxy,
    config: { account_url: `http://127.0.0.1:${proxy.port}/${server.accountName}`, container: server.container },
    credentials: { account_key: server.accountKey },
    holdings: async () => {
      const found: Holding[] = []
      for await (const { name } of server.client.listBlobsFlat()) {
        found.push({ docId: docIdIn(name), sha256: sha256Of(await server.client.getBlobClient(name).downloadToBuffer()) })
      }
      return found
    },
    clear: async () => {
      for await (const { name } of server.client.listBlobsFlat()) await server.client.deleteBlob(name)
    },
    stop,
  }
}

/** Starts the contract doubles of SharePoint and Google Drive, which cannot be run here. */
const startDoubles = async (): Promise<{ targets: Target[]; routes: Pick<Routes, 'cloudHosts' | 'cloudPort' | 'microsoft'> }> => {
  const authority = await createAuthority()
  const certificate = await authority.issue('DNS:localhost,DNS:www.googleapis.com,IP:127.0.0.1')
  const graph = await startGraphDouble(certificate)
  const drive = await startDriveDouble(certificate)
  const [teamsiteSide, driveSide] = await Promise.all([behindProxy(graph.port, graph.stop), behindProxy(drive.port, drive.stop)])
  const caCertificate = authority.certificate
  const { tenantId, clientId, clientSecret } = graph.application
  const teamsite: Target = {
    kind: 'teamsite',
    keepsMessages: false,
    proxy: teamsiteSide.proxy,
    config: { site_url: graph.siteUrl, document_library: 'Documents', ca_certificate: caCertificate },
    credentials: { tenant_id: tenantId, client_id: clientId, client_secret: clientSecret },
    // The double compares names in lower case, but keeps the path as it was sent.
    holdings: async () => [...graph.items.values()].map(({ path, sha256 }) => ({ docId: docIdIn(path), sha256 })),
    clear: async () => graph.items.clear(),
    stop: teamsiteSide.stop,
  }
  const driveTarget: Target = {
    kind: 'drive',
    keepsMessages: false,
    proxy: driveSide.proxy,
    config: { folder_id: drive.folders.shared, ca_certificate: caCertificate },
    credentials: { service_account: drive.keyFile(driveSide.proxy.port) },
    holdings: async () => [...drive.files.values()].map(({ name, sha256 }) => ({ docId: docIdIn(name), sha256 })),
    clear: async () => drive.files.clear(),
    stop: async () => {
      await driveSide.stop()
      await authority.remove()
    },
  }
  return {
    targets: [teamsite, driveTarget],
    // The double of Drive names `localhost` as the host of an upload.
    routes: {
      cloudHosts: ['www.googleapis.com', 'localhost'],
      cloudPort: driveSide.proxy.port,
      microsoft: { root: graph.rootAt(teamsiteSide.proxy.port), scope: graph.scope },
    },
  }
}

const startSftp = async (): Promise<Target> => {
  const server = await startSshd()
  const { proxy, stop } = await behindProxy(server.port, server.stop)
  return {
    kind: 'sftp',
    keepsMessages: false,
    proxy,
    config: { host: '127.0.0.1', port: proxy.port, host_key_sha256: server.hostKeyFingerprint },
    credentials: { username: server.username, private_key: server.privateKey },
    holdings: () => filesIn(server.directory),
    clear: () => clearFolder(server.directory),
    stop,
  }
}

const startEmail = async (): Promise<Target & { server: MailServer }> => {
  const server = await startMailServer({ authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'] })
  const { proxy, stop } = await behindProxy(server.port, server.stop)
  return {
    kind: 'email',
    keepsMessages: true,
    proxy,
    config: {
      host: '127.0.0.1',
      port: proxy.port,
      tls: 'none',
      from: 'relay@acme.example',
      to: 'archive@acme.example',
      max_attachment_bytes: 64 * 1024 * 1024,
    },
    credentials: {},
    holdings: async () =>
      server.mails.map(({ parsed, attachment }) => ({ docId: docIdIn(parsed.subject ?? ''), sha256: attachment?.sha256 ?? 'none' })),
    clear: async () => void (server.mails.length = 0),
    stop,
    server,
  }
}

const startWebhook = async (): Promise<Target & { server: HttpTarget }> => {
  const server = await startHttpTarget()
  const { proxy, stop } = await behindProxy(server.port, server.stop)
  return {
    kind: 'webhook',
    keepsMessages: true,
    proxy,
    config: { url: `http://127.0.0.1:${proxy.port}/` },
    credentials: {},
    holdings: async () => server.arrivals.map(({ headers, sha256 }) => ({ docId: String(headers['x-relay-doc-id']), sha256 })),
    clear: async () => void (server.arrivals.length = 0),
    stop,
    server,
  }
}

const startDirectory = async (): Promise<Target & { root: string }> => {
  const root = await mkdtemp(join(tmpdir(), 'relay-faults-directory-'))
  const path = join(root, 'archive')
  await mkdir(path)
  return {
    kind: 'directory',
    keepsMessages: false,
    proxy: undefined,
    config: { path },
    credentials: {},
    holdings: () => filesIn(path),
    clear: () => clearFolder(path),
    stop: () => rm(root, { recursive: true }),
    root,
  }
}

export interface Targets {
  all: Record<Kind, Target>
  /** The web server behind the webhook, whose answers a row can replace. */
  web: HttpTarget
  /** The mail server, if it was started. */
  mail: MailServer | undefined
  directoryRoot: string
  routes: Pick<Routes, 'cloudHosts' | 'cloudPort' | 'microsoft'>
  stop(): Promise<void>
}

/** Starts a server for each of these kinds of destinations. The web server and the folder are always started. */
export const startTargets = async (wanted: readonly Kind[]): Promise<Targets> => {
  const ifWanted = async <T>(start: () => Promise<T>, ...startedKinds: Kind[]): Promise<T | undefined> =>
    startedKinds.some((kind) => wanted.includes(kind)) ? start() : undefined
  const [objstore, blob, doubles, sftp, email, webhook, directory] = await Promise.all([
    ifWanted(startObjstore, 'objstore'),
    ifWanted(startBlob, 'blob'),
    ifWanted(startDoubles, 'teamsite', 'drive'),
    ifWanted(startSftp, 'sftp'),
    ifWanted(startEmail, 'email'),
    startWebhook(),
    startDirectory(),
  ])
  const started = [objstore, blob, ...(doubles?.targets ?? []), sftp, email, webhook, directory]
  const list = started.filter((target) => target !== undefined)
  return {
    all: Object.fromEntries(list.map((target) => [target.kind, target])) as Record<Kind, Target>,
    web: webhook.server,
    mail: email?.server,
    directoryRoot: directory.root,
    routes: doubles?.routes ?? { cloudHosts: [] },
    stop: async () => {
      for (const target of list) await target.stop()
    },
  }
}
