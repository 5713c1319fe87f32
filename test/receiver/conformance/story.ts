import { createCertificates } from '../../../src/db/certificates.ts'
import { readCertificate } from '../../../src/security/certificate.ts'
import { expirationIn, signedQuery, type RawParameter } from '../../support/signed-query.ts'
import { createSigner, type KeyKind, type Signer } from '../../support/signer.ts'
import type { CallOptions, SourceAnswer } from '../../support/source-system.ts'
import { startScene } from '../receiver.ts'

/** How a source system of this run signs; without it, the repository does not look at signatures. */
export interface Signing {
  kind: KeyKind
  digest: string
}

/** A request. Values as they stand on the wire. */
export interface Asking extends CallOptions {
  docId?: string
  contRep?: string
  compId?: string
  /** Further parameters; of them, docProt alone is signed. */
  more?: Record<string, string>
}

/** What a source system may get wrong when it signs. */
export interface Mistakes {
  accessMode?: string
  expiration?: string
  message?: string
  signer?: Signer
}

export const authId = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE'
export const lockTimeoutMs = 300

// the facts' table of commands once more, and not ours: what we took from it wrongly must show here
const accessModes: Record<string, string> = { create: 'c', mCreate: 'c', update: 'u', append: 'u', delete: 'd' }
const signsCompId = new Set(['create', 'update', 'append', 'delete'])

/** In the order in which source systems send them. */
const parametersOf = ({ docId = 'D1', contRep = 'Z1', compId, more = {} }: Asking): RawParameter[] => [
  ['pVersion', '0045'],
  ['contRep', contRep],
  ['docId', docId],
  ...(compId === undefined ? [] : [['compId', compId] satisfies RawParameter]),
  ...Object.entries(more),
]

/** What every signature covers, as far as it is there. */
export const base = ['contRep', 'docId', 'docProt', 'accessMode', 'authId', 'expiration']

/** One run of the conformance script: a repository, the source system that fills it, and what an operator does. */
export const startStory = async (signing: Signing | undefined) => {
  const { kind, digest } = signing ?? { kind: 'RSA 2048', digest: 'sha256' }
  const scene = await startScene({ RELAY_DOCUMENT_LOCK_TIMEOUT_MS: String(lockTimeoutMs) })
  const [signer, stranger, workspace] = await Promise.all([createSigner(kind), createSigner(kind), scene.workspace()])
  const { source, workspaceId, repositoryId } = workspace
  const certificates = createCertificates(scene.db)
  if (signing) await scene.db('repositories').where({ id: repositoryId }).update({ signature_verification: true })

  const signedParameters = (command: string, asking: Asking, { accessMode, expiration }: Mistakes = {}): RawParameter[] => [
    ...parametersOf(asking),
    ['accessMode', accessMode ?? accessModes[command] ?? 'r'],
    ['authId', authId],
    ['expiration', expiration ?? expirationIn(7_200)],
  ]
  /** Of these parameters in this order. */
  const sign = (command: string, parameters: RawParameter[], { message, signer: by = signer }: Mistakes = {}) =>
    signedQuery(by, command, parameters, {
      signed: signsCompId.has(command) ? [...base, 'compId'] : base,
      digest,
      ...(message === undefined ? {} : { message }),
    })
  /** Signed in every run. */
  const signedUrl = (command: string, asking: Asking = {}, mistakes: Mistakes = {}) =>
    sign(command, signedParameters(command, asking, mistakes), mistakes)
  /** As the source system of this run writes it. */
  const url = async (command: string, asking: Asking = {}) =>
    signing ? signedUrl(command, asking) : [command, ...parametersOf(asking).map(([parameter, value]) => `${parameter}=${value}`)].join('&')

  return {
    ...workspace,
    scene,
    isSigned: signing !== undefined,
    signer,
    stranger,
    certificates,
    signedParameters,
    sign,
    signedUrl,
    url,
    ask: async (command: string, asking: Asking = {}) => source.call(await url(command, asking), asking),
    putCert: (body: string | Buffer, contRep = 'Z1') =>
      source.call(`putCert&pVersion=0045&contRep=${contRep}&authId=${authId}`, { method: 'PUT', body }),
    activate: async (ofRepositoryId = repositoryId) => {
      const { fingerprintSha256 } = readCertificate(signer.der)!
      const all = await certificates.listAll(ofRepositoryId)
      const { id } = all.find((certificate) => certificate.fingerprintSha256 === fingerprintSha256)!
      await certificates.setStatus(workspaceId, ofRepositoryId, id, 'active', { type: 'api_key', userId: null })
    },
    stop: async () => {
      await Promise.all([signer.remove(), stranger.remove()])
      await scene.stop()
    },
  }
}

export type Story = Awaited<ReturnType<typeof startStory>>

/** Its number and what it is about; what happens, and what is expected of it. */
export type Step = [name: string, run: (story: Story) => Promise<void>]

/** The status, and of a refusal its code. */
export const outcomeOf = async (asked: SourceAnswer | Promise<SourceAnswer>) => {
  const { status, headers } = await asked
  const description = headers['x-errordescription']
  return description === undefined ? [status] : [status, description.split(':')[0]]
}

export const put = (body: string | Buffer, contentType = 'text/plain'): CallOptions => ({
  method: 'PUT',
  body,
  headers: { 'content-type': contentType },
})
