// Reads the query strings of captured requests. Pure, so that it can be tested without a browser.

export interface ReadQuery {
  /** What stands first and has no value: the command of the content server protocol. Empty if there is none. */
  command: string
  /** Names and decoded values, in the order of the query. */
  parameters: [name: string, value: string][]
}

const encodedBytes = /(?:%[0-9a-f]{2})+/gi

/** Decodes percent-encoding: of UTF-8, or else of a code page. Without one, a text that is encoded otherwise stays as it is. */
const decode = (text: string, codePage?: string | null): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    if (!codePage) return text
    // A character of some code pages ends with an ASCII letter, which is not percent-encoded.
    const characters = text.replaceAll(encodedBytes, (run) =>
      String.fromCharCode(
        ...run
          .slice(1)
          .split('%')
          .map((hex) => Number.parseInt(hex, 16)),
      ),
    )
    const bytes = Uint8Array.from(characters, (character) => character.charCodeAt(0))
    return /^[\p{ASCII}\x80-\xff]*$/u.test(characters) ? new TextDecoder(codePage).decode(bytes) : text
  }
}

/** @param codePage encoding of values that are not UTF-8 */
export const readQuery = (query: string, codePage?: string | null): ReadQuery => {
  const tokens = query.split('&').filter((token) => token !== '')
  const command = tokens[0] !== undefined && !tokens[0].includes('=') ? decode(tokens[0]) : ''
  const parameters = (command === '' ? tokens : tokens.slice(1)).map((token): [string, string] => {
    const equals = token.indexOf('=')
    return equals < 0 ? [decode(token), ''] : [decode(token.slice(0, equals)), decode(token.slice(equals + 1), codePage)]
  })
  return { command, parameters }
}

/** Returns what a request asks for: the command for the receiver, or the function that is called through the bridge. */
export const commandOf = (uri: string, query: string): string => readQuery(query).command || decode(uri.slice(uri.lastIndexOf('/') + 1))

/** Returns the value of a parameter, whose name may be written in any case. */
export const valueOf = (query: string, name: string): string | undefined =>
  readQuery(query).parameters.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1]
