import { newId } from '../../src/base/ids.ts'
import { createRequestSigner, type Signing } from '../../src/content-server/sign.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { requireSignatures } from '../support/require-signatures.ts'
import { startScene } from '../support/scene.ts'
import { part } from '../support/source-system.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

/** The contents of the components of a document, by their names. */
export type Contents = Record<string, string>

/** A content server that a source system has used for years. */
export interface OldServer extends AsyncDisposable {
  url: string
  /** What a client of it needs to sign. Empty if it serves unsigned requests. */
  credentials: { auth_id?: string; certificate?: string; private_key?: string }
  signing?: Signing
  /** Ends it in the view of a client. */
  close(): void
  /** Starts it again, with everything that it had. */
  open(): void
  /** Stores documents, as if years ago. */
  store(documents: Map<string, Contents>): Promise<void>
  /** Loses some bytes of documents, and still says that it has them. */
  damage(docIds: [string, string]): Promise<void>
  /** Replaces a document now. */
  change(docId: string, contents: Contents): Promise<void>
  /** Loses a document. */
  lose(docId: string): Promise<void>
  docIds(): Promise<string[]>
}

const authId = 'CN=RELAY'
const longAgo = new Date('2019-03-02T10:15:30Z')

const gateOf = async (port: number, url: string) => {
  const { port: gatePort, close, open, stop } = await startTcpProxy(port)
  return { url: url.replace(`:${port}/`, `:${gatePort}/`), close, open, stop }
}

/** The content server that shares no code with the relay. It serves unsigned requests: it takes a process to verify a signature. */
export const startIndependentServer = async (): Promise<OldServer> => {
  const server = await startOldContentServer()
  const gate = await gateOf(server.port, server.url)
  return {
    ...gate,
    credentials: {},
    store: async (documents) => {
      for (const [docId, contents] of documents) server.put(docId, contents, { date: longAgo })
    },
    damage: async (docIds) => {
      for (const docId of docIds) server.documents.get(`Z1/${docId}`)!.components[0]!.sizeBytes += 1
    },
    change: async (docId, contents) => server.put(docId, contents),
    lose: async (docId) => void server.documents.delete(`Z1/${docId}`),
    docIds: async () => [...server.documents.keys()].map((key) => key.replace('Z1/', '')),
    [Symbol.asyncDispose]: async () => {
      await gate.stop()
      await server.stop()
    },
  }
}

/** A relay with a database of its own, which serves signed requests only. */
export const startSecondRelay = async (): Promise<OldServer> => {
  const [scene, { certificate, privateKey }] = await Promise.all([startScene(), createThrowAwayKey('rsa', 'RELAY', 1)])
  const { db, api } = scene
  // The databases of tests are copies, which have one id.
  await db('installation').update({ id: newId() })
  const workspace = await scene.workspace()
  const { repositoryId, workspaceId, source } = workspace
  const gate = await gateOf(api.port, `${api.baseUrl}${workspace.path}`)
  const contentOf = async (docId: string): Promise<string> => {
    const { content_id: id } = await db('documents')
      .where({ workspace_id: workspaceId, doc_id: docId, comp_id: 'data' })
      .first('content_id')
    return id
  }
  return {
    ...gate,
    credentials: { auth_id: authId, certificate, private_key: privateKey },
    signing: { signer: createRequestSigner({ authId, certificate, privateKey }) },
    store: async (documents) => {
      for (const [docId, contents] of documents) {
        const parts = Object.entries(contents).map(([compId, body]) => part(compId, body))
        const { status } = await source.createParts(docId, parts)
        if (status !== 201) throw new Error(`${docId} was answered ${status}`)
        await workspace.age(docId)
      }
      await requireSignatures(db, workspace, { authId, certificate })
    },
    damage: async ([shortened, emptied]) => {
      const short = { data: db.raw('substring(data from 1 for 3)') }
      await db('content_chunks')
        .where({ content_id: await contentOf(shortened) })
        .update(short)
      await db('content_chunks')
        .where({ content_id: await contentOf(emptied) })
        .delete()
    },
    change: async (docId, contents) => {
      await db('repositories').where({ id: repositoryId }).update({ signature_verification: false })
      const parts = Object.entries(contents).map(([compId, body]) => part(compId, body))
      const { status } = await source.updateParts(docId, parts)
      await db('repositories').where({ id: repositoryId }).update({ signature_verification: true })
      if (status !== 200) throw new Error(`${docId} was answered ${status}`)
    },
    lose: async (docId) => {
      await db('archive_documents').where({ repository_id: repositoryId, doc_id: docId }).update({ deleted_at: new Date() })
    },
    docIds: () => db('archive_documents').where({ repository_id: repositoryId, deleted_at: null }).pluck('doc_id'),
    [Symbol.asyncDispose]: async () => {
      await gate.stop()
      await scene.stop()
    },
  }
}
