import { plainText } from '../../../src/base/text.ts'
import type { Answer } from './http.ts'
import { Deviation, NotOffered } from './outcome.ts'

/** Returns what a server has answered, with its own explanation: `info was answered with 404 (document not found)`. */
export const told = ({ asked, status, headers }: Answer): string => {
  const description = headers['x-errordescription']?.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200)
  return `${asked} was answered with ${status}${description ? ` (${description})` : ''}`
}

/** @throws `Deviation` unless the answer has one of these statuses */
export const expectStatus = (answer: Answer, ...expected: number[]): void => {
  if (!expected.includes(answer.status)) throw new Deviation(`${told(answer)} instead of ${expected.join(' or ')}`)
}

/** @throws `Deviation` unless the request was refused */
export const expectRefused = (answer: Answer): void => {
  if (answer.status < 400) throw new Deviation(`${told(answer)} instead of being refused`)
}

/** @param what the thing that is compared, as in "the body of get" */
export const expectEqual = (what: string, actual: unknown, expected: unknown): void => {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (found !== wanted) throw new Deviation(`${what}: ${found ?? 'missing'} instead of ${wanted}`)
}

/** @param form of the value in words, as in "a date YYYY-MM-DD" */
export const expectForm = (what: string, actual: string | undefined, pattern: RegExp, form: string): void => {
  if (actual === undefined) throw new Deviation(`${what} is missing`)
  if (!pattern.test(actual)) throw new Deviation(`${what} is "${plainText(actual, 100)}" instead of ${form}`)
}

export const expectBytes = (what: string, actual: Buffer, expected: Buffer | string): void => {
  const wanted = Buffer.from(expected as string)
  if (actual.equals(wanted)) return
  if (actual.length !== wanted.length) throw new Deviation(`${what} has ${actual.length} bytes instead of ${wanted.length}`)
  const at = actual.findIndex((byte, index) => byte !== wanted[index])
  throw new Deviation(`${what} has other bytes than were sent, the first one at offset ${at}`)
}

/** Expects the bytes of a component, or of a range of it. */
export const expectContent = (what: string, answer: Answer, expected: Buffer | string): void => {
  expectStatus(answer, 200)
  expectBytes(what, answer.body, expected)
}

// What servers answer to a command that they do not have. The protocol has only 400 for it.
const unknownCommand = [400, 405, 501]

/**
 * Passes the answer to the usual form of a command that a server need not have.
 * @param also further statuses that say so
 * @throws `NotOffered`
 */
export const offered = (answer: Answer, ...also: number[]): Answer => {
  if ([...unknownCommand, ...also].includes(answer.status)) throw new NotOffered(told(answer))
  return answer
}

/** Compares content types: names and parameters without regard to case and blanks, values as they are. */
export const expectContentType = (what: string, actual: string | undefined, expected: string): void => {
  const normal = (type: string) =>
    type.split(';').map((token, index) => {
      const [name, ...value] = token.trim().split('=')
      return index === 0 ? name!.toLowerCase() : [name!.toLowerCase(), ...value].join('=')
    })
  if (actual === undefined || normal(actual).join() !== normal(expected).join()) {
    throw new Deviation(`${what} is ${actual === undefined ? 'missing' : `"${actual}"`} instead of "${expected}"`)
  }
}
