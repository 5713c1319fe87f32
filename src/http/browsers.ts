import cors from '@koa/cors'
import type { Middleware } from 'koa'
import compress from 'koa-compress'

const preflightMaxAgeSeconds = 600
// A browser hides all other response headers from a page of another origin.
const exposedHeaders = [
  'Accept-Ranges',
  'Content-Disposition',
  'Content-Range',
  'Deprecation',
  'ETag',
  'Idempotent-Replayed',
  'Link',
  'Retry-After',
  'Sunset',
  'WWW-Authenticate',
  'X-Relay-Request-Id',
  'X-Relay-Version',
]

/**
 * Allows web pages of these origins to call the API. API keys are sent in a header that only the page itself can set, so a browser never
 * adds credentials on its own.
 */
export const allowOrigins = (origins: readonly string[]): Middleware => {
  if (origins.length === 0) return (_, next) => next()
  return cors({
    origin: (context) => (origins.includes(context.get('origin')) ? context.get('origin') : ''),
    exposeHeaders: exposedHeaders,
    maxAge: preflightMaxAgeSeconds,
    keepHeadersOnError: false,
  })
}

const textTypes = new Set(['application/json', 'text/html', 'text/css', 'text/javascript', 'image/svg+xml'])

/**
 * Compresses JSON, and the files of the console, of 1 KiB and more with the encoding that the client prefers. An attachment switches it
 * off.
 */
export const compressText = (): Middleware => {
  const compression = compress({ filter: (type) => textTypes.has(type), zstd: false, deflate: false })
  return (context, next) => {
    // A client may refuse every encoding, and the plain answer too. It gets the plain answer; koa-compress would fail.
    if (context.acceptsEncodings('br', 'gzip', 'identity') === false) context['compress'] = false
    return compression(context, next)
  }
}
