import { decodeBytes, encodeValue } from '../content-server/encoding.ts'

// Proxies, gateways and links in portals rewrite the authId of a URL on its way: they decode it, encode it in another way, or write a
// distinguished name as they are used to. What was signed is the spelling of the source system.

const decodedOnceMore = (text: string) => decodeBytes(text).toString('latin1')

/** Returns an authId in a form in which its usual spellings are equal: percent-encoding, case, order, separators, plus and blank. */
const plainForm = (authId: string): string =>
  decodedOnceMore(Buffer.from(authId).toString('latin1'))
    .split(/[,;/]/)
    .map((part) =>
      part
        .replaceAll(/[+\s]+/g, ' ')
        .replaceAll(/ ?= ?/g, '=')
        .trim()
        .toLowerCase(),
    )
    .filter(Boolean)
    .toSorted()
    .join(',')

/** Returns the names that are another spelling of an authId. They find certificates only: a signature has to match one of their keys. */
export const otherSpellings = (authId: string, names: readonly string[]): string[] => {
  const form = plainForm(authId)
  return names.filter((name) => name !== authId && plainForm(name) === form)
}

// What the interface requires to be encoded. Other servers and clients encode more, as `encodeValue` does.
const encodedBySap = /[\0-\x20<>"#%{}|\\^~[\]`;/?:@=&\x7f-\xff]/g

/** Percent-encodes the bytes of a value as source systems do. */
export const encodedAsBySap = (bytes: Buffer): string =>
  bytes
    .toString('latin1')
    .replaceAll(encodedBySap, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)

/** Returns how a source system may have written an authId in the text that it signed. */
export const signedSpellings = (names: readonly string[]): string[] => [
  ...new Set(
    names
      .flatMap((name) => [name, name.replaceAll('+', ' '), name.replaceAll(' ', '+'), decodedOnceMore(name)])
      .flatMap((name) => [encodedAsBySap(Buffer.from(name)), encodeValue(name), Buffer.from(name).toString('latin1')]),
  ),
]
