// Run by `npm run build`: copies the worker of Temporal's SDK to dist/temporal-worker, without what bundles workflows. That part is loaded with
// every worker, needs 92 packages (webpack and others), and has nothing to do where bundle.ts has been. `#temporal-worker` is the package in
// a checkout (package.json), and the copy in dist (dist/package.json). The packages that the copy needs are dependencies of the relay.
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The dependencies of `@temporalio/worker` that only its bundler needs. test/temporal/worker-library.test.ts compares the others. */
export const packagesOfBundler = ['@swc/core', 'memfs', 'source-map-loader', 'swc-loader', 'unionfs', 'webpack']

const bundler = `'use strict'
// In the place of the bundler: see src/temporal/copy-worker-library.ts of document-relay.
const refuse = () => {
  throw new Error('This copy of @temporalio/worker cannot bundle workflows')
}
exports.defaultWorkflowInterceptorModules = [require.resolve('../workflow-log-interceptor')]
exports.bundleWorkflowCode = refuse
exports.WorkflowCodeBundler = class {
  createBundle = refuse
}
`

const copyWorkerLibrary = async (): Promise<void> => {
  const from = dirname(createRequire(import.meta.url).resolve('@temporalio/worker/package.json'))
  const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
  const to = join(dist, 'temporal-worker')
  await mkdir(to, { recursive: true })
  for (const name of ['package.json', 'LICENSE']) await cp(join(from, name), join(to, name))
  const isCopied = (path: string) => !path.startsWith(join(from, 'lib/workflow/bundler')) && ['', '.js'].includes(extname(path))
  await cp(join(from, 'lib'), join(to, 'lib'), { recursive: true, filter: isCopied })
  await writeFile(join(to, 'lib/workflow/bundler.js'), bundler)
  const scope = { type: 'module', imports: { '#temporal-worker': './temporal-worker/lib/index.js' } }
  await writeFile(join(dist, 'package.json'), `${JSON.stringify(scope, null, 2)}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await copyWorkerLibrary()
