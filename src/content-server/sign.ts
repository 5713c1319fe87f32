import { createSignMessage, type SigningKey } from '../security/cms-sign.ts'
import { encodeBytes, encodeValue } from './encoding.ts'
import { commandRules, type CommandName, type CommandRule, type ParameterName } from './parameters.ts'

/** Key of a client, and the name by which the server finds its certificate: that of the `putCert` which has brought it. */
export interface SigningIdentity extends SigningKey {
  authId: string
}

export interface RequestSigner {
  authId: string
  /** Signs the concatenated values of a URL. @returns the secKey, in base64 */
  secKeyOf(message: string, at: Date): string
}

/** @throws `TypeError` if the key or the certificate cannot be used: `signingKeyIssue` says why */
export const createRequestSigner = ({ authId, ...key }: SigningIdentity): RequestSigner => {
  const signMessage = createSignMessage(key)
  return { authId, secKeyOf: (message, at) => signMessage(Buffer.from(message, 'latin1'), at).toString('base64') }
}

/** Values of the parameters, not encoded. `compIdBytes`: the name of a component that is not UTF-8, with one character per byte. */
export type Parameters = { [Name in ParameterName | 'compIdBytes']?: string | undefined }

export interface Signing {
  signer: RequestSigner
  /** Two hours from now by default, as in source systems. */
  expiresAt?: Date | undefined
}

// The order in which all measured source systems write them.
const order: readonly ParameterName[] = [
  'pVersion',
  'contRep',
  'docId',
  'compId',
  'docProt',
  'scanPerformed',
  'pattern',
  'caseSensitive',
  'fromOffset',
  'toOffset',
  'numResults',
  'resultAs',
  'accessMode',
  'authId',
  'expiration',
]
const lifetimeMs = 2 * 3_600_000

/**
 * Returns the query string of a request, signed if the command can be signed and a signer is given. The secKey covers the values of the
 * signed parameters in the order of the URL, as they stand there.
 */
export const requestQuery = (command: CommandName, method: string, parameters: Parameters, signing?: Signing): string => {
  const rule = commandRules.find((candidate) => candidate.command === command && candidate.methods.includes(method))
  if (!rule) throw new TypeError(`${command} does not accept the method ${method}`)
  const isSigned = signing !== undefined && rule.access !== null
  const now = new Date()
  const all: Parameters = { ...parameters, ...(isSigned && signedAccess(signing, rule, now)) }
  const tokens = order.flatMap((name) => {
    const value = all[name]
    if (name === 'compId' && all.compIdBytes !== undefined) return [{ name, raw: encodeBytes(all.compIdBytes) }]
    return value === undefined ? [] : [{ name, raw: encodeValue(value) }]
  })
  const query = [command, ...tokens.map(({ name, raw }) => `${name}=${raw}`)].join('&')
  if (!isSigned) return query
  const signed = new Set(rule.parameters.filter((parameter) => parameter.signed).map(({ name }) => name))
  const message = tokens.filter(({ name }) => signed.has(name)).map(({ raw }) => raw)
  return `${query}&secKey=${encodeURIComponent(signing.signer.secKeyOf(message.join(''), now))}`
}

const signedAccess = ({ signer, expiresAt }: Signing, { access }: CommandRule, now: Date): Parameters => ({
  accessMode: access!,
  authId: signer.authId,
  expiration: expirationOf(expiresAt ?? new Date(now.getTime() + lifetimeMs)),
})

/** Returns a time in the format of the interface, `YYYYMMDDHHMMSS` in UTC. */
const expirationOf = (time: Date): string => time.toISOString().replaceAll(/\D/g, '').slice(0, 'YYYYMMDDHHMMSS'.length)
