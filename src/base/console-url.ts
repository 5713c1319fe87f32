/**
 * Returns the address of a page of the console.
 * @param baseUrl where people reach the relay, undefined if it is unknown
 * @param path for example `documents/01K9R4B6ZD8M2V7X0QF3N5T1CF`
 */
export const consoleUrlOf = (baseUrl: string | undefined, path: string): string | undefined =>
  baseUrl === undefined ? undefined : `${baseUrl.replace(/\/+$/, '')}/console/${path}`
