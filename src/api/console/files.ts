import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { extname } from 'node:path'

/** A file that the browser loads. */
export interface ConsoleFile {
  /** Relative to the folder of all files, with slashes: `console/main.js`. */
  name: string
  body: Buffer
}

// The root of the repository or, in a compiled relay, `dist`: both contain the same folders.
const root = new URL('../../..', import.meta.url)

/** Modules of the relay that the console also uses. They import nothing but each other. */
const sharedModules = [
  'src/connectors/error-codes',
  'src/connectors/shared/final-statuses',
  'src/domain/business-object',
  'src/domain/business-object-types',
  'src/domain/delivery-states',
  'src/domain/document-query',
  'src/domain/query-marks',
  'src/domain/refusal-codes',
  'src/domain/retry',
  'workflows/ids',
]

/** Packages that the modules import, by name. The import map of the page says where the browser finds them. */
export const packages = ['preact', 'preact/hooks', '@preact/signals', '@preact/signals-core', 'htm', 'uplot'] as const

export const packageFile = (name: string): string => `packages/${name.replace('@', '').replaceAll('/', '-')}.js`

const specifier = /((?:\bfrom|\bimport)\s*\(?\s*'\.{1,2}\/[^'\n]+)\.ts'/g

/** Removes the types from a module. A browser runs the rest as it is. */
export const toJavaScript = (source: string): string => stripTypeScriptTypes(source).replaceAll(specifier, "$1.js'")

const readModule = async (url: URL): Promise<Buffer> => {
  const source = await readFile(url, 'utf8')
  return Buffer.from(url.pathname.endsWith('.ts') ? toJavaScript(source) : source)
}

/** Writes the files of docs/enrichments into the module that has them. A compiled one has them already. */
const withReady = async (name: string, body: Buffer): Promise<Buffer> => {
  if (name !== 'ready-enrichments.ts') return body
  const folder = new URL('docs/enrichments/', root)
  const files = (await readdir(folder))
    .toSorted()
    .map(async (file) => [file.replace('.json', ''), JSON.parse(await readFile(new URL(file, folder), 'utf8'))])
  return Buffer.from(
    `${body.toString()}\nObject.assign(readyEnrichments, ${JSON.stringify(Object.fromEntries(await Promise.all(files)))})\n`,
  )
}

/** Reads the files in the folder `console`: modules, without their types, the style sheet and the icon. */
export const readConsoleSources = async (): Promise<ConsoleFile[]> => {
  const names = (await readdir(new URL('console/', root), { recursive: true })).map((name) => name.replaceAll('\\', '/'))
  const kept = names.filter((name) => ['.ts', '.js', '.css', '.svg'].includes(extname(name))).toSorted()
  return Promise.all(
    kept.map(async (name) => ({
      name: `console/${name.replace(/\.ts$/, '.js')}`,
      body: await withReady(name, await readModule(new URL(`console/${name}`, root))),
    })),
  )
}

const readShared = (name: string): Promise<Buffer> =>
  readModule(new URL(`${name}.js`, root)).catch(() => readModule(new URL(`${name}.ts`, root)))

/** Reads the module of a package. */
const readPackage = async (name: (typeof packages)[number]): Promise<Buffer> => {
  if (name !== 'uplot') return readFile(new URL(import.meta.resolve(name)))
  // The minified file of uPlot is a script that declares a variable. Its module is three times as large.
  const script = await readFile(new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js')), 'utf8')
  return Buffer.from(`${script}\nexport default uPlot\n`)
}

const schemasModule = 'console/request-schemas.js'

/** Writes the schemas of requests into the module that has them. */
const withSchemas = (file: ConsoleFile, schemas: object): ConsoleFile =>
  file.name === schemasModule
    ? { ...file, body: Buffer.from(`${file.body.toString()}\nObject.assign(requestSchemas, ${JSON.stringify(schemas)})\n`) }
    : file

/**
 * Returns all files of the console with a digest of their contents, which is a part of their addresses.
 * @param schemas of the requests that the forms make, by operation
 */
export const loadConsoleFiles = async (schemas: object): Promise<{ files: ConsoleFile[]; digest: string }> => {
  const files = [
    ...(await readConsoleSources()).map((file) => withSchemas(file, schemas)),
    ...(await Promise.all(sharedModules.map(async (name) => ({ name: `${name}.js`, body: await readShared(name) })))),
    ...(await Promise.all(packages.map(async (name) => ({ name: packageFile(name), body: await readPackage(name) })))),
    { name: 'packages/uplot.css', body: await readFile(new URL(import.meta.resolve('uplot/dist/uPlot.min.css'))) },
  ]
  const hash = createHash('sha256')
  for (const { name, body } of files) hash.update(name).update(body)
  return { files, digest: hash.digest('hex').slice(0, 16) }
}
