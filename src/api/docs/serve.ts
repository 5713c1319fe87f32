import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Context, Middleware } from 'koa'
import { newId } from '../../base/ids.ts'
import { openDocs, type ReadDocs } from './load.ts'

// Pages are text of this repository, and every file comes from the relay itself.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const types: Record<string, string> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
}

const compressors = {
  br: (body: Buffer) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (body: Buffer) => promisify(gzip)(body),
  identity: async (body: Buffer) => body,
}

interface Served {
  type: string
  etag: string
  bodies: Partial<Record<keyof typeof compressors, Promise<Buffer>>>
}

/**
 * Returns where a file may be for an address below `/docs`: `install`, `install.html` and `install.md` are one page, `connectors/` is that of a
 * folder.
 */
const placesOf = (path: string): string[] => {
  if (path === '' || path === 'README.md') return ['index.html']
  if (path.endsWith('.md')) return [path.replace(/md$/, 'html')]
  if (path.endsWith('/')) return [`${path}README.html`]
  return extname(path) === '' ? [`${path}.html`] : [path]
}

/**
 * Serves the documentation below `/docs`, and `/llms.txt`, without authentication: it contains no data of a workspace. Each coding of a file
 * is computed once in a process, so that requests for the index of the search do not make it busy.
 */
export const createDocs = (open: () => Promise<ReadDocs> = openDocs): Middleware => {
  let opening: Promise<ReadDocs> | undefined
  const served = new Map<string, Served>()

  const find = async (place: string): Promise<Served | undefined> => {
    const known = served.get(place)
    if (known) return known
    const read = await (opening ??= open())
    const body = await read(place)
    if (body === undefined) return undefined
    const file: Served = {
      type: types[extname(place)] ?? 'text/plain',
      etag: createHash('sha256').update(body).digest('base64url').slice(0, 22),
      bodies: { identity: Promise.resolve(body) },
    }
    served.set(place, file)
    return file
  }

  const send = async (context: Context, file: Served) => {
    context.set({
      'x-relay-request-id': newId(),
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    })
    const accepted = file.type === 'image/png' ? 'identity' : context.acceptsEncodings('br', 'gzip', 'identity') || 'identity'
    const encoding = accepted as keyof typeof compressors
    context.type = file.type
    context.vary('accept-encoding')
    // A tag of its own for each coding: they are different bytes.
    context.etag = encoding === 'identity' ? file.etag : `${file.etag}-${encoding}`
    context.status = 200
    if (context.fresh) {
      context.status = 304
      return
    }
    if (encoding !== 'identity') context.set('content-encoding', encoding)
    const plain = await file.bodies.identity!
    context.body = await (file.bodies[encoding] ??= compressors[encoding](plain))
  }

  return async (context, next) => {
    if (!['GET', 'HEAD'].includes(context.method)) return next()
    if (context.path === '/docs') {
      // Relative, because a proxy may add a path. Addresses in pages are relative to the folder.
      context.status = 302
      context.set({ location: 'docs/', 'x-relay-request-id': newId() })
      context.body = ''
      return undefined
    }
    // Where programs look for it (llmstxt.org). Its links lead to the pages in a checkout as well.
    const path = context.path === '/llms.txt' ? 'llms.txt' : /^\/docs\/(.*)$/.exec(context.path)?.[1]
    if (path === undefined) return next()
    for (const place of placesOf(path)) {
      const file = await find(place)
      if (file) return send(context, file)
    }
    return next()
  }
}
