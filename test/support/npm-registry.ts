import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const name = 'document-relay'

/**
 * Starts a package registry that has document-relay in these versions, for `npm install`. Each is a command that runs the checkout, and has
 * no dependencies, so that npm needs no network; test/package.release.test.ts tests what the real package contains. No package has advisories.
 * @param folder keeps the packages, and the cache of npm
 */
export const startNpmRegistry = async (folder: string, versions: string[]) => {
  const packages = await Promise.all(
    versions.map(async (version) => {
      const manifest = { name, version, bin: { relay: 'relay' } }
      const content = join(folder, version, 'package')
      await mkdir(content, { recursive: true })
      await writeFile(join(content, 'package.json'), JSON.stringify(manifest))
      await writeFile(join(content, 'relay'), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 })
      await promisify(execFile)('tar', ['-czf', `${content}.tgz`, '-C', join(folder, version), 'package'])
      return { version, manifest, path: `/${name}/-/${name}-${version}.tgz`, tarball: await readFile(`${content}.tgz`) }
    }),
  )
  const advisoryRequests: { method: string | undefined; body: string }[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url, headers } = request
    const requested = packages.find(({ path }) => path === url)
    if (requested) {
      response.end(requested.tarball)
    } else if (url === `/${name}`) {
      const entries = packages.map(({ version, manifest, path }) => [
        version,
        { ...manifest, dist: { tarball: `http://${headers.host}${path}` } },
      ])
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ name, 'dist-tags': { latest: versions.at(-1) }, versions: Object.fromEntries(entries) }))
    } else if (url === '/-/npm/v1/security/advisories/bulk') {
      advisoryRequests.push({ method, body: await text(request) })
      response.end('{}')
    } else {
      // npm also asks for its own last version, and goes on without an answer.
      response.writeHead(404).end()
    }
  }
  const server = createServer((request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    /** The requests for advisories. The body of one by `npm install` is compressed, and cannot be read here. */
    advisoryRequests,
    /** Variables with which npm uses this registry. */
    variables: {
      npm_config_registry: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      npm_config_cache: join(folder, 'cache'),
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
