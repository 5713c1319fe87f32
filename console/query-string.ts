// Reads the query strings of captured requests. Pure, so that it can be tested without a browser.

export interface ReadQuery {
  /** What stands first and has no value: the command of the content server protocol. Empty if there is none. */
  command: string
  /** Names and decoded values, in the order of the query. */
  parameters: [name: string, value: string][]
}

/** Decodes percent-encoding. A text that is encoded wrongly stays as it is. */
const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const readQuery = (query: string): ReadQuery => {
  const tokens = query.split('&').filter((token) => token !== '')
  const command = tokens[0] !== undefined && !tokens[0].includes('=') ? decode(tokens[0]) : ''
  const parameters = (command === '' ? tokens : tokens.slice(1)).map((token): [string, string] => {
    const equals = token.indexOf('=')
    return equals < 0 ? [decode(token), ''] : [decode(token.slice(0, equals)), decode(token.slice(equals + 1))]
  })
  return { command, parameters }
}

/** Returns what a request asks for: the command for the receiver, or the function that is called through the bridge. */
export const commandOf = (uri: string, query: string): string => readQuery(query).command || decode(uri.slice(uri.lastIndexOf('/') + 1))

/** Returns the value of a parameter, whose name may be written in any case. */
export const valueOf = (query: string, name: string): string | undefined =>
  readQuery(query).parameters.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1]
