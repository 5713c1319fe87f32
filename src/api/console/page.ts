import { createHash } from 'node:crypto'
import { packageFile, packages, type ConsoleFile } from './files.ts'

export interface Page {
  html: string
  /** Value of the header Content-Security-Policy. */
  policy: string
}

// What the page runs, in this order.
const entries = ['console/load-again.js', 'console/main.js']

const escapeAttribute = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

const staticImport = /\bfrom ?['"]([^'"\n]+)['"]/g

/** Returns the names of the modules that run before the first screen, which are the entries and all that they import statically. */
const firstModules = (files: readonly ConsoleFile[]): string[] => {
  const modules = new Map(files.filter(({ name }) => name.endsWith('.js')).map(({ name, body }) => [name, body.toString()]))
  const found = new Set<string>()
  const follow = (name: string) => {
    const source = modules.get(name)
    if (source === undefined || found.has(name)) return
    found.add(name)
    for (const [, specifier] of source.matchAll(staticImport)) {
      follow(specifier!.startsWith('.') ? new URL(specifier!, `file:///${name}`).pathname.slice(1) : packageFile(specifier!))
    }
  }
  for (const entry of entries) follow(entry)
  return [...found]
}

/**
 * Returns the only page of the console. Its modules find the packages by an import map, which is the one inline script that the policy
 * allows. Every address is relative to `basePath`, so that the relay can stand behind a proxy that adds a path.
 * @param basePath path of the relay as browsers see it, without a slash at the end
 * @param digest of the files, see files.ts
 */
export const createPage = (basePath: string, files: readonly ConsoleFile[], digest: string): Page => {
  const address = (name: string) => `./assets/${digest}/${name}`
  const imports = Object.fromEntries(packages.map((name) => [name, address(packageFile(name))]))
  const importMap = JSON.stringify({ imports })
  const importMapHash = createHash('sha256').update(importMap).digest('base64')
  // Without these links, the browser would learn of a module only when it has read the one that imports it.
  const preloads = firstModules(files)
    .map((name) => `    <link rel="modulepreload" href="${address(name)}">`)
    .join('\n')
  const [first, main] = entries.map((name) => `    <script type="module" src="${address(name)}"></script>`)
  const styles = files
    .filter(({ name }) => name.startsWith('console/') && name.endsWith('.css'))
    .map(({ name }) => `    <link rel="stylesheet" href="${address(name)}">`)
    .join('\n')
  const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <base href="${escapeAttribute(basePath)}/console/">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Document Relay</title>
    <link rel="icon" href="${address('console/icon.svg')}" type="image/svg+xml">
    <script type="importmap">${importMap}</script>
${first}
${styles}
${preloads}
${main}
  </head>
  <body>
    <div id="app"></div>
    <noscript>The console requires JavaScript.</noscript>
  </body>
</html>
`
  return { html, policy: policyOf(importMapHash) }
}

// Everything comes from the relay itself. Scripts set styles by properties only, which style-src does not restrict.
const policyOf = (importMapHash: string) =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${importMapHash}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ')
