/**
 * Returns the address of a page of the console.
 * @param baseUrl where people reach the relay, undefined if it is unknown
 * @param path for example `documents/01K9R4B6ZD8M2V7X0QF3N5T1CF`, with its query
 * @param workspace the one that the page shows, `{userSlug}/{workspaceSlug}`: a person with several may have looked at another one last.
 * Without it, the page is of the installation
 */
export const consoleUrlOf = (baseUrl: string | undefined, path: string, workspace?: string): string | undefined => {
  if (baseUrl === undefined) return undefined
  const query = workspace === undefined ? '' : `${path.includes('?') ? '&' : '?'}workspace=${workspace}`
  return `${baseUrl.replace(/\/+$/, '')}/console/${path}${query}`
}
