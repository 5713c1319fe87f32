import { once } from 'node:events'
import http, { type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Protection {
  until: string | undefined
  mode: string | undefined
  isOnHold: boolean
}

/** A container with immutability of versions, which Azurite does not have. */
export interface ImmutableBlobs extends AsyncDisposable {
  port: number
  /** Makes a blob a former version, as a rule of a lifecycle does: it is no longer there by its name alone. By the end of its path. */
  hide(path: string): void
  /** Returns what protects a blob, by the end of its path. */
  protectionOf(path: string): Protection | undefined
  /** Writes that made a blob, by their paths. */
  written: string[]
  /** The conditions of these writes. */
  conditions: (string | undefined)[]
}

/** The version of every blob. */
export const versionId = '2026-11-28T09:15:30.0000000Z'

const header = (headers: IncomingHttpHeaders, name: string) => (headers[name] === undefined ? undefined : String(headers[name]))

/**
 * Starts a proxy before Azurite that keeps the retention of blobs as Azure does: it takes it with Put Blob and Put Block List, tells it with HEAD,
 * sets and clears the legal hold, and gives each blob one version, by which it is there after it was hidden
 * (https://learn.microsoft.com/rest/api/storageservices/put-blob, set-blob-legal-hold, get-blob-properties, versioning-overview).
 */
export const startImmutableBlobs = async (targetPort: number): Promise<ImmutableBlobs> => {
  const protections = new Map<string, Protection>()
  const written: string[] = []
  const conditions: (string | undefined)[] = []
  const hidden = new Set<string>()
  const server = http.createServer((request, response) => {
    const { method = '', url = '', headers } = request
    const { pathname, searchParams } = new URL(url, 'http://store')
    const comp = searchParams.get('comp')
    const path = decodeURIComponent(pathname)
    if (method === 'PUT' && comp === 'legalhold') {
      protections.set(path, { ...protections.get(path)!, isOnHold: headers['x-ms-legal-hold'] === 'true' })
      request
        .resume()
        .on('end', () => response.writeHead(200, { 'x-ms-request-id': 'r1', 'x-ms-legal-hold': headers['x-ms-legal-hold'] }).end())
      return
    }
    const version = searchParams.get('versionid')
    if (method === 'GET' && (version === null ? hidden.has(path) : version !== versionId)) {
      response.writeHead(404, { 'x-ms-error-code': 'BlobNotFound', 'x-ms-request-id': 'r2', 'content-type': 'application/xml' })
      request.resume().on('end', () => response.end('<Error><Code>BlobNotFound</Code><Message>The blob does not exist.</Message></Error>'))
      return
    }
    const upstream = http.request({ host: '127.0.0.1', port: targetPort, method, path: url, headers, agent: false }, (answer) => {
      const stores = method === 'PUT' && (comp === null || comp === 'blocklist')
      if (stores && answer.statusCode === 201) {
        written.push(path)
        conditions.push(header(headers, 'if-none-match'))
        const [until, mode] = ['until-date', 'mode'].map((name) => header(headers, `x-ms-immutability-policy-${name}`))
        protections.set(path, { until, mode, isOnHold: headers['x-ms-legal-hold'] === 'true' })
      }
      const found = protections.get(path)
      const told =
        method === 'HEAD' && found && answer.statusCode === 200
          ? {
              ...(found.until !== undefined && {
                'x-ms-immutability-policy-until-date': found.until,
                'x-ms-immutability-policy-mode': found.mode,
              }),
              'x-ms-legal-hold': String(found.isOnHold),
            }
          : {}
      response.writeHead(answer.statusCode ?? 0, { ...answer.headers, ...told, ...(stores && { 'x-ms-version-id': versionId }) })
      answer.pipe(response)
    })
    upstream.on('error', () => request.socket.destroy())
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    hide: (path) => void hidden.add([...protections.keys()].find((name) => name.endsWith(path))!),
    protectionOf: (path) => [...protections].find(([name]) => name.endsWith(path))?.[1],
    written,
    conditions,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
