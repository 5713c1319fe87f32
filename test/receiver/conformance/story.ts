import { readCertificate } from '../../../src/security/certificate.ts'
import { createCertificates } from '../../../src/workspace/certificates.ts'
import { startScene } from '../../support/scene.ts'
import { expirationIn, signedQuery, type RawParameter } from '../../support/signed-query.ts'
import { createSigner, type KeyKind, type Signer } from '../../support/signer.ts'
import type { CallOptions, SourceAnswer } from '../../support/source-system.ts'

/** How the source system of a run signs. Without it, the repository does not verify signatures. */
export interface Signing {
  kind: KeyKind
  digest: string
}

/** A request. Values are percent-encoded. */
export interface StepRequest extends CallOptions {
  docId?: string
  contRep?: string
  compId?: string
  /** Further parameters. Only docProt is signed. */
  more?: Record<string, string>
}

/** Mistakes of a source system in a signed URL. */
export interface Mistakes {
  accessMode?: string
  expiration?: string
  message?: string
  signer?: Signer
}

export const authId = 'CN%3DTST,OU%3DI0099999999,OU%3DSAPWebAS,O%3DSAPTrustCommunity,C%3DDE'
export const lockTimeoutMs = 300

// Copied from the specification, not from the product, so that a mistake in the product's table shows here.
const accessModes: Record<string, string> = { create: 'c', mCreate: 'c', update: 'u', append: 'u', delete: 'd' }
const signsCompId = new Set(['create', 'update', 'append', 'delete'])

/** Returns the parameters in the order in which source systems send them. */
const parametersOf = ({ docId = 'D1', contRep = 'Z1', compId, more = {} }: StepRequest): RawParameter[] => [
  ['pVersion', '0045'],
  ['contRep', contRep],
  ['docId', docId],
  ...(compId === undefined ? [] : [['compId', compId] satisfies RawParameter]),
  ...Object.entries(more),
]

/** Parameters that every signature covers, if the URL contains them. */
export const base = ['contRep', 'docId', 'docProt', 'accessMode', 'authId', 'expiration']

/** Starts a run of the conformance script: a repository, its source system, and the actions of an operator. */
export const startStory = async (signing: Signing | undefined) => {
  const { kind, digest } = signing ?? { kind: 'RSA 2048', digest: 'sha256' }
  const scene = await startScene({ limits: { receiver: { lockTimeoutMs } } })
  const [signer, stranger, workspace] = await Promise.all([createSigner(kind), createSigner(kind), scene.workspace()])
  const { source, workspaceId, repositoryId } = workspace
  const certificates = createCertificates(scene.db)
  if (signing) await scene.db('repositories').where({ id: repositoryId }).update({ signature_verification: true })

  const signedParameters = (command: string, request: StepRequest, { accessMode, expiration }: Mistakes = {}): RawParameter[] => [
    ...parametersOf(request),
    ['accessMode', accessMode ?? accessModes[command] ?? 'r'],
    ['authId', authId],
    ['expiration', expiration ?? expirationIn(7_200)],
  ]
  /** Signs the parameters in the order of the array. */
  const sign = (command: string, parameters: RawParameter[], { message, signer: signedBy = signer }: Mistakes = {}) =>
    signedQuery(signedBy, command, parameters, {
      signed: signsCompId.has(command) ? [...base, 'compId'] : base,
      digest,
      ...(message === undefined ? {} : { message }),
    })
  /** Returns a signed URL, also in the unsigned run. */
  const signedUrl = (command: string, request: StepRequest = {}, mistakes: Mistakes = {}) =>
    sign(command, signedParameters(command, request, mistakes), mistakes)
  /** Returns a URL as the source system of this run writes it. */
  const url = async (command: string, request: StepRequest = {}) =>
    signing
      ? signedUrl(command, request)
      : [command, ...parametersOf(request).map(([parameter, value]) => `${parameter}=${value}`)].join('&')

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
    ask: async (command: string, request: StepRequest = {}) => source.call(await url(command, request), request),
    putCert: (body: string | Buffer, contRep = 'Z1') =>
      source.call(`putCert&pVersion=0045&contRep=${contRep}&authId=${authId}`, { method: 'PUT', body }),
    activate: async (certificateOf = repositoryId) => {
      const { fingerprintSha256 } = readCertificate(signer.der)!
      const all = await certificates.listAll(certificateOf)
      const { id } = all.find((certificate) => certificate.fingerprintSha256 === fingerprintSha256)!
      await certificates.setStatus({ workspaceId, repositoryId: certificateOf, actor: { type: 'system', userId: null } }, id, 'active')
    },
    stop: async () => {
      await Promise.all([signer.remove(), stranger.remove()])
      await scene.stop()
    },
  }
}

type Story = Awaited<ReturnType<typeof startStory>>

/** A step of the script: its number and title, and a function that runs and checks it. */
export type Step = [name: string, run: (story: Story) => Promise<void>]

/** Returns the status, and the code if the request is refused. */
export const outcomeOf = async (answer: SourceAnswer | Promise<SourceAnswer>) => {
  const { status, headers } = await answer
  const description = headers['x-errordescription']
  return description === undefined ? [status] : [status, description.split(':')[0]]
}

export const put = (body: string | Buffer, contentType = 'text/plain'): CallOptions => ({
  method: 'PUT',
  body,
  headers: { 'content-type': contentType },
})
