import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Context, Middleware } from 'koa'
import type { Config } from '../config.ts'
import { newId } from '../ids.ts'
import { describeApi } from './description.ts'
import { pageHtml, pageScript, pageStyle } from './reference-page.ts'

const assetMaxAgeSeconds = 86_400
const require = createRequire(import.meta.url)
const assets: Record<string, string> = {
  'swagger-ui.css': require.resolve('swagger-ui-dist/swagger-ui.css'),
  'swagger-ui-bundle.js': require.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  'favicon-32x32.png': require.resolve('swagger-ui-dist/favicon-32x32.png'),
}

// Swagger UI sets styles on elements, from its script and in images that are data; everything else comes from us
const policyOf = (baseUrl: string | undefined) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self'${baseUrl !== undefined && URL.canParse(baseUrl) ? ` ${new URL(baseUrl).origin}` : ''}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

const sendFile = async (context: Context, name: string, file: string) => {
  const { size, mtime } = await stat(file)
  context.type = name
  context.length = size
  context.lastModified = mtime
  context.status = 200
  if (context.fresh) context.status = 304
  else if (context.method !== 'HEAD') context.body = createReadStream(file)
}

const sendText = (context: Context, type: string, text: string) => {
  context.type = type
  context.body = text
}

/** `/openapi.json` and `/docs`, for everybody: they hold nothing of any workspace. */
export const createReference = (config: Pick<Config, 'RELAY_BASE_URL'>): Middleware => {
  const document = describeApi()
  const policy = policyOf(config.RELAY_BASE_URL)

  const describe = (context: Context) => {
    const base = (config.RELAY_BASE_URL ?? `${context.protocol}://${context.host}`).replace(/\/+$/, '')
    context.set('cache-control', 'no-cache')
    context.body = { ...document, servers: document.servers.map((server) => ({ ...server, url: base + server.url })) }
  }

  return async (context, next) => {
    const name = /^\/docs\/([a-z0-9.-]+)$/.exec(context.path)?.[1]
    const isOurs = context.path === '/openapi.json' || context.path === '/docs' || name !== undefined
    if (!isOurs || !['GET', 'HEAD'].includes(context.method)) return next()

    context.set('x-relay-request-id', newId())
    context.set({ 'content-security-policy': policy, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    if (context.path === '/openapi.json') return describe(context)
    context.set('cache-control', name === undefined ? 'no-cache' : `public, max-age=${assetMaxAgeSeconds}`)
    if (name === undefined) return sendText(context, 'html', pageHtml)
    if (name === 'page.js') return sendText(context, 'js', pageScript)
    if (name === 'page.css') return sendText(context, 'css', pageStyle)
    if (Object.hasOwn(assets, name)) return sendFile(context, name, assets[name]!)
    context.remove('cache-control')
    return next()
  }
}
