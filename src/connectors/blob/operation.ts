interface Request {
  method: string
  url: string
}

/** Names by https://learn.microsoft.com/rest/api/storageservices/operations-on-blobs, by method and `comp`. */
const names: Record<string, string> = {
  'PUT ': 'Put Blob',
  'PUT block': 'Put Block',
  'PUT blocklist': 'Put Block List',
  'PUT legalhold': 'Set Blob Legal Hold',
  'PUT tags': 'Set Blob Tags',
  'GET ': 'Get Blob',
  'GET tags': 'Get Blob Tags',
  'HEAD ': 'Get Blob Properties',
  'DELETE ': 'Delete Blob',
}

/** Returns the operation of a request with its place. The query, which may contain a SAS token, is left out. */
export const operationOfRequest = (request: Request): string => {
  const { origin, pathname, searchParams } = new URL(request.url)
  const name = names[`${request.method} ${searchParams.get('comp') ?? ''}`] ?? request.method
  const [, block] = /-(\d+)$/.exec(Buffer.from(searchParams.get('blockid') ?? '', 'base64').toString()) ?? []
  return `${name}${block === undefined ? '' : ` (block ${Number(block)})`} of ${origin}${decoded(pathname)}`
}

const decoded = (path: string) => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
