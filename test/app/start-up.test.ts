import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

// Prints the packages of the modules that a process loads. jest has a loader of its own, which has no such hooks.
const listPackages = `
  import { registerHooks } from 'node:module'
  const names = new Set()
  registerHooks({
    load: (url, context, nextLoad) => {
      names.add(/.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1])
      return nextLoad(url, context)
    },
  })
  for (const path of process.argv.slice(1)) await import(path)
  console.log(JSON.stringify([...names]))
  process.exit()`

const packagesOf = async (...modules: string[]): Promise<string[]> => {
  const paths = modules.map((module) => new URL(`../../${module}`, import.meta.url).href)
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', listPackages, ...paths]
  const { stdout } = await promisify(execFile)(process.execPath, options)
  return JSON.parse(stdout) as string[]
}

// They cost each process some 80 MiB and 0.5 CPU-s, and most installations have destinations of few kinds. Only a process of its own reads PDF.
const needed = /^(@aws-sdk\/|@smithy\/|@azure\/|ssh2$|nodemailer$|pino-pretty$|@libpdf\/|pkijs$)/

test('an API process and a worker do not load the libraries of destinations before they need them, nor the one that reads PDF', async () => {
  const packages = await packagesOf('src/app/api.ts', 'src/app/worker.ts', 'src/cli/cli.ts')
  expect(packages).toEqual(expect.arrayContaining(['koa', '@temporalio/worker']))
  expect(packages.filter((name) => needed.test(name))).toEqual([])
})

test('they are loaded with the modules that deliver and read', async () => {
  const modules = ['objstore', 'blob', 'sftp', 'email'].map((kind) => `src/connectors/${kind}/deliver.ts`)
  const packages = await packagesOf(...modules, 'src/enrichment/e-invoice.ts')
  expect(packages).toEqual(expect.arrayContaining(['@aws-sdk/client-s3', '@azure/storage-blob', 'ssh2', 'nodemailer', '@libpdf/core']))
})
