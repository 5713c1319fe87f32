import { contentServer } from '../../../src/connectors/content-server/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createThrowAwayKey } from '../../../src/security/throw-away-key.ts'
import { startBusyServer } from '../../support/busy-server.ts'
import { disposable } from '../../support/disposable.ts'
import { startPages } from '../../support/pages.ts'
import { requireSignatures } from '../../support/require-signatures.ts'
import { startScene, type Scene, type SceneWorkspace } from '../../support/scene.ts'
import { share } from '../../support/share.ts'
import { describeConnector } from '../conformance.ts'
import { contextOf, failure, payloadOf } from '../payloads.ts'
import type { RunningTarget } from '../rig.ts'
import { refuseCommand, rig, steps } from './rig.ts'

const authId = 'CN=RELAY'
const key = await createThrowAwayKey('rsa', 'RELAY', 1)
const credentials = { auth_id: authId, certificate: key.certificate, private_key: key.privateKey }

/** Creates a workspace of the second relay whose repository accepts requests that are signed with the key. */
const createTarget = async (scene: Scene): Promise<SceneWorkspace> => {
  const workspace = await scene.workspace()
  await requireSignatures(scene.db, workspace, { authId, certificate: key.certificate })
  return workspace
}

const start = async (): Promise<RunningTarget> => {
  const scene = await startScene()
  const workspace = await createTarget(scene)
  const target = (port = scene.api.port, config: object = {}, other: object = {}) => ({
    // The relay accepts fewer characters in a docId than a path may have.
    config: contentServer.config.parse({
      url: `http://127.0.0.1:${port}${workspace.path}`,
      repository: 'Z1',
      document_ids: 'relay',
      ...config,
    }),
    credentials: contentServer.credentials.parse({ ...credentials, ...other }),
  })
  const { certificate, privateKey } = await createThrowAwayKey('rsa', 'RELAY', 1)
  const documents = () =>
    scene
      .db('archive_documents')
      .join('documents', 'documents.archive_document_id', 'archive_documents.id')
      .join('contents', 'contents.id', 'documents.content_id')
      .where({ 'documents.workspace_id': workspace.workspaceId, 'archive_documents.deleted_at': null, 'documents.superseded_at': null })
      .select<{ docId: string; compId: string; contentType: string; sizeBytes: string; sha256: Buffer }[]>({
        docId: 'documents.doc_id',
        compId: 'documents.comp_id',
        contentType: 'documents.content_type',
        sizeBytes: 'documents.size_bytes',
        sha256: 'contents.sha256',
      })
  const read = async (docId: unknown) => {
    const found = (await documents()).find((document) => document.docId === docId)
    return found && { ...found, sizeBytes: Number(found.sizeBytes), sha256: found.sha256.toString('hex') }
  }
  return {
    connector: contentServer,
    target,
    network: {
      port: scene.api.port,
      pages: (status, which) => startPages(scene.api.port, status, which),
      wrongCredentials: target(scene.api.port, {}, { certificate, private_key: privateKey }),
      secrets: [key.privateKey, privateKey],
      busy: (load, retryAfter) => startBusyServer(load, { 'retry-after': retryAfter }, 'later'),
    },
    refusing: { steps, start: async (step) => refuseCommand(scene.api.port, step, target) },
    missingLocation: { target: target(scene.api.port, { repository: 'NONE' }), code: 'repository_missing' },
    keepsContentType: true,
    read: ({ documentId }) => read(documentId),
    readByNames: ({ doc_id: docId }) => read(docId),
    documents: async () => (await documents()).map(({ docId, compId }) => `${docId}/${compId}`),
    leftovers: async () => [],
    reset: async () => {
      await scene.db('archive_documents').where({ workspace_id: workspace.workspaceId }).update({ deleted_at: new Date() })
    },
    stop: scene.stop,
  }
}

describeConnector({ ...rig, against: 'a second relay', start })

test('a document that the relay has sent itself is refused', async () => {
  const scene = share(await startScene())
  const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))
  const { path } = await createTarget(scene)
  const target = {
    config: contentServer.config.parse({ url: scene.api.baseUrl + path, repository: 'Z1' }),
    credentials: contentServer.credentials.parse(credentials),
  }
  const { id: installationId }: { id: string } = await scene.db('installation').first('id')
  const error = await failure(contentServer.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound, { installationId })))
  expect(error).toMatchObject({ code: 'http_508', permanent: true })
})
