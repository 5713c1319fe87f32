import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import type { Context, Middleware } from 'koa'
import { newId } from '../../base/ids.ts'
import type { Config } from '../../config/config.ts'
import { compressText } from '../../http/browsers.ts'
import { relayUrlOf } from '../../http/input.ts'
import { createDocs } from '../docs/serve.ts'
import { assetNames, assetPath } from './assets.ts'
import type { describeApi } from './document.ts'
import { workspacePath } from './info.ts'

// `relay openapi` has written it, and `npm run build` copies it: to describe the API at each start takes 0.8 s of processor time and 30 MiB.
const documentFile = new URL('../../../openapi.json', import.meta.url)

const assetMaxAgeSeconds = 86_400

// Swagger UI sets styles from its script and uses images in data: URLs. Everything else is served by the relay.
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

/** Serves `/openapi.json`, `/docs/reference` and the other pages of the documentation without authentication: none of them contains data of a workspace. */
export const createReference = (config: Pick<Config, 'RELAY_BASE_URL'>): Middleware => {
  const policy = policyOf(config.RELAY_BASE_URL)
  const compress = compressText()
  const docs = createDocs()

  let reading: Promise<ReturnType<typeof describeApi>> | undefined

  const describe = async (context: Context) => {
    reading ??= readFile(documentFile, 'utf8').then((text) => JSON.parse(text))
    const document = await reading
    const base = relayUrlOf(context, config.RELAY_BASE_URL)
    context.set('cache-control', 'no-cache')
    context.body = { ...document, servers: document.servers.map((server) => ({ ...server, url: base + workspacePath })) }
  }

  return async (context, next) => {
    const name = /^\/docs\/([a-z0-9.-]+)$/.exec(context.path)?.[1]
    const isPage = name === 'reference'
    const isOwn = context.path === '/openapi.json' || isPage || ['page.js', 'page.css', ...assetNames].some((each) => each === name)
    if (!isOwn || !['GET', 'HEAD'].includes(context.method)) return docs(context, next)

    context.set('x-relay-request-id', newId())
    context.set({ 'content-security-policy': policy, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    if (context.path === '/openapi.json') return compress(context, () => describe(context))
    context.set('cache-control', isPage ? 'no-cache' : `public, max-age=${assetMaxAgeSeconds}`)
    if (isPage) return compress(context, async () => sendText(context, 'html', pageHtml))
    if (name === 'page.js') return sendText(context, 'js', pageScript)
    if (name === 'page.css') return sendText(context, 'css', pageStyle)
    const asset = assetNames.find((each) => each === name)!
    return sendFile(context, asset, assetPath(asset))
  }
}

// The page around Swagger UI. Its markup contains no inline script or style, so that the Content-Security-Policy can
// forbid both.

const pageHtml = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Document Relay API</title>
    <link rel="icon" type="image/png" href="favicon-32x32.png">
    <link rel="stylesheet" href="swagger-ui.css">
    <link rel="stylesheet" href="page.css">
  </head>
  <body>
    <div id="reference"></div>
    <noscript>This page requires JavaScript. It displays <a href="../openapi.json">openapi.json</a>.</noscript>
    <script src="swagger-ui-bundle.js"></script>
    <script src="page.js"></script>
  </body>
</html>
`

// validatorUrl is null, because the default is a public service that would receive the address of this installation.
const pageScript = `SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  validatorUrl: null,
})
`

// Hides the column of links, which is always empty. The other rules keep a narrow window from scrolling sideways.
const pageStyle = `body { margin: 0; }
.swagger-ui .wrapper { max-width: 1200px; }
.swagger-ui .info { margin: 24px 0; }
.swagger-ui .scheme-container { padding: 12px 0; }
.swagger-ui .response-col_links { display: none; }
.swagger-ui .servers > label select { max-width: 100%; }
.swagger-ui .computed-url { overflow-wrap: anywhere; }
.swagger-ui .computed-url code { display: inline-block; padding: 0; }
.swagger-ui .opblock-body table, .swagger-ui .opblock-body pre { max-width: 100%; }
@media (max-width: 640px) {
  .swagger-ui .scheme-container .schemes { display: block; }
  .swagger-ui .opblock-summary-path { overflow-wrap: anywhere; }
  .swagger-ui .responses-table > tbody > tr > td, .swagger-ui .responses-table > thead > tr > td { padding-left: 0; }
  .swagger-ui .parameters-col_description { margin-bottom: 1em; }
}
`
