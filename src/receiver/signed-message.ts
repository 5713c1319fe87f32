import { decodeBytes } from './bytes.ts'
import type { Query } from './command.ts'
import type { CommandRule } from './parameters.ts'

/** What a virus scanner's flag is called: newer clients sign it with what changes a component, and the interface does not know it. */
const scanPerformed = 'scanperformed'

/**
 * What the secKey of this request may cover, the most likely first: the signed parameters' values in the order of the URL, one
 * after the other, exactly as they stand on the wire. Measured signatures all cover that; some clients decode the values first.
 */
export const signedMessages = ({ parameters }: Query, rule: Pick<CommandRule, 'access' | 'parameters'>): Buffer[] => {
  const signed = new Set(rule.parameters.filter((parameter) => parameter.signed).map(({ name }) => name.toLowerCase()))
  const plain = parameters.filter(({ name }) => signed.has(name.toLowerCase()) && name.toLowerCase() !== scanPerformed)
  const scanned = parameters.filter((parameter) => plain.includes(parameter) || parameter.name.toLowerCase() === scanPerformed)

  const candidates = [
    ...(rule.access === 'u' && scanned.length > plain.length ? [Buffer.from(scanned.map(({ raw }) => raw).join(''), 'latin1')] : []),
    Buffer.from(plain.map(({ raw }) => raw).join(''), 'latin1'),
    Buffer.concat(plain.map(({ raw }) => decodeBytes(raw))),
  ]
  return candidates.filter((candidate, index) => candidates.findIndex((other) => other.equals(candidate)) === index)
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/** The bytes of a secKey, its percent-encoding already undone. Undefined where it is no base64, whatever happened to it on the way. */
export const decodeSecKey = (secKey: string): Buffer | undefined => {
  // a proxy that takes the query for a form makes a blank of the plus; some clients break lines
  const text = secKey.replaceAll(/[\r\n\t]/g, '').replaceAll(' ', '+')
  return base64.test(text) ? Buffer.from(text, 'base64') : undefined
}
