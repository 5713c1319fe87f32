import { decodeBytes } from '../content-server/encoding.ts'
import type { CommandRule, ParameterName } from '../content-server/parameters.ts'
import { encodedAsBySap, signedSpellings } from './auth-id.ts'
import type { Parameter, Query } from './command.ts'
import { Refusal } from './refusal.ts'

// A secKey signs the values of the signed parameters one after another, without separators. The same text can therefore be cut into other
// values. The checks of this file leave as little room for that as the measured clients allow.

export type ParameterOrder = 'fixed' | 'any'

type Rule = Pick<CommandRule, 'parameters'>

const isNamed = (parameter: Parameter, name: ParameterName) => parameter.name.toLowerCase() === name.toLowerCase()

/** Returns the signed parameters of a request in the order of the table of parameters, and in that of the URL. */
const signedParameters = ({ parameters }: Query, rule: Rule) => {
  const expected = rule.parameters
    .filter(({ signed }) => signed)
    .flatMap(({ name }) => {
      const parameter = parameters.find((candidate) => isNamed(candidate, name))
      return parameter ? [{ name, parameter }] : []
    })
  const inUrl = parameters.flatMap((parameter) => expected.filter((signed) => signed.parameter === parameter))
  return { expected, inUrl }
}

/** @throws `Refusal` unless the signed parameters stand in the order of the measured clients, and scanPerformed has its form and place */
export const checkSignedParameters = (query: Query, rule: Rule, order: ParameterOrder): void => {
  const { expected, inUrl } = signedParameters(query, rule)
  const names = inUrl.map(({ name }) => name)
  const scan = names.indexOf('scanPerformed')
  // A Boolean of the source system is X or empty.
  if (scan >= 0 && (!['X', ''].includes(inUrl[scan]!.parameter.raw) || names[scan + 1] !== 'accessMode')) {
    throw new Refusal('signature_invalid', 'scanPerformed must be X or empty, and stand directly before accessMode')
  }
  if (order === 'any') return
  const expectedNames = expected.map(({ name }) => name)
  if (names.join() !== expectedNames.join()) {
    throw new Refusal('signature_invalid', `the signed parameters must stand in the order ${expectedNames.join(', ')}`)
  }
}

/**
 * Returns the messages that the secKey of a request may cover, the most likely first: the values of the signed parameters in the order of
 * the URL, concatenated and not decoded. All measured signatures cover that; some clients decode the values first. Clients that send
 * scanPerformed may leave it unsigned.
 */
export const signedMessages = (query: Query, rule: Rule): Buffer[] => {
  const { inUrl } = signedParameters(query, rule)
  const raw = (values: typeof inUrl) => Buffer.from(values.map(({ parameter }) => parameter.raw).join(''), 'latin1')
  const withoutScan = inUrl.filter(({ name }) => name !== 'scanPerformed')
  const decoded = Buffer.concat(withoutScan.map(({ parameter }) => decodeBytes(parameter.raw)))
  return distinct([raw(inUrl), raw(withoutScan), decoded])
}

const distinct = (candidates: Buffer[]) =>
  candidates.filter((candidate, index) => candidates.findIndex((other) => other.equals(candidate)) === index)

/**
 * Returns the messages that the secKey of a request may cover if something on the way has rewritten its authId, or the encoding of its
 * values. Their decoded values are those of the URL, and the authId is that of a certificate: this adds no other reading of a signed text.
 * @param authIds the authId of the URL and those of the certificates that it may mean
 */
export const rewrittenMessages = (query: Query, rule: Rule, authIds: readonly string[]): Buffer[] => {
  const { inUrl } = signedParameters(query, rule)
  const withoutScan = inUrl.filter(({ name }) => name !== 'scanPerformed')
  const spellings = signedSpellings(authIds)
  const encodings = [
    (raw: string) => raw,
    (raw: string) => encodedAsBySap(decodeBytes(raw)),
    (raw: string) => decodeBytes(raw).toString('latin1'),
  ]
  return distinct(
    [inUrl, withoutScan].flatMap((signed) =>
      encodings.flatMap((encode) =>
        spellings.map((authId) =>
          Buffer.from(signed.map(({ name, parameter }) => (name === 'authId' ? authId : encode(parameter.raw))).join(''), 'latin1'),
        ),
      ),
    ),
  )
}

/** An accessMode as source systems write it: `crud`, or letters of r, c, u and d in this order, each at most once. */
export const isAccessMode = (text: string): boolean => text !== '' && /^(crud|r?c?u?d?)$/.test(text)

/** Values of the signed parameters between contRep and authId, decoded. */
export interface SignedValues {
  docId: string
  /** Values between docId and accessMode, concatenated: those of compId, docProt and scanPerformed that the command signs. */
  between: string
  /** True if `between` contains a component or a docProt. */
  namesComponent: boolean
  accessMode: string
}

export const signedValues = (query: Query, rule: Rule): SignedValues => {
  const { expected } = signedParameters(query, rule)
  const valueOf = (name: ParameterName) => expected.find((signed) => signed.name === name)?.parameter.value ?? ''
  const [compId, docProt] = [valueOf('compId'), valueOf('docProt')]
  return {
    docId: valueOf('docId'),
    between: compId + docProt + valueOf('scanPerformed'),
    namesComponent: compId + docProt !== '',
    accessMode: valueOf('accessMode'),
  }
}

/**
 * Returns the docIds of other documents for which the same text could have been signed: those whose id continues with the flag of the
 * scanner or the first letters of the accessMode. Empty for the accessMode of one letter that source systems send.
 */
export const otherDocIds = ({ docId, between, namesComponent, accessMode }: SignedValues): string[] => {
  if (namesComponent) return []
  const text = between + accessMode
  return Array.from({ length: text.length - 1 }, (_, index) => index + 1)
    .filter((length) => isAccessMode(text.slice(length)))
    .map((length) => docId + text.slice(0, length))
}

/**
 * Returns true if the text could have been signed to create the document: it ends with the docProt that the document was created with and
 * an accessMode that allows a create. Otherwise, a holder of the URL that created a document could read it with `accessMode=rc`.
 */
export const couldBeItsCreate = ({ between, accessMode }: SignedValues, docProt: string): boolean => {
  if (docProt === '') return false
  const endings = Array.from(accessMode, (_, index) => accessMode.slice(index))
  return endings.some((ending) => ending.includes('c') && isAccessMode(ending) && (between + accessMode).endsWith(docProt + ending))
}

const documentIdOfSap = /^[0-9A-F]{32}(?![0-9A-F])/
// What may follow a generated id in a longer one: a second generated id, as in the longest known ids of 65 characters, or the rest of a
// longer number, as of a digest. A component is hardly called so.
const continuation = /^(?:[._-][0-9A-F]{32}|[0-9A-F]{8,})$/

/**
 * Returns true if a docId continues one as the source system generates them, such as with the name of a component: then the text was
 * probably signed to create that component.
 */
export const continuesGeneratedId = (docId: string): boolean =>
  docId.length > 32 && /^[0-9A-F]{32}/.test(docId) && !continuation.test(docId.slice(32))

/**
 * Returns the repository for which a URL counts, if its signature fits several repositories whose names begin alike, such as Z and Z1: the
 * one for which the docId is one as the source system generates them, else the one with the longest name.
 * @param rivals names of other repositories that accept signatures of the same signer; each begins with `contRep` or is its beginning
 */
export const repositoryOf = (contRep: string, { docId, between, accessMode }: SignedValues, rivals: string[]): string => {
  if (documentIdOfSap.test(docId) && docId.length === 32) return contRep
  const text = contRep + docId + between + accessMode
  const possible = rivals.filter((name) => text.startsWith(name) && text.length > name.length)
  const generated = possible.find((name) => documentIdOfSap.test(text.slice(name.length)))
  return generated ?? [...possible, contRep].toSorted((one, other) => other.length - one.length)[0]!
}
