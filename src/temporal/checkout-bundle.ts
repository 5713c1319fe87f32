import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'
import { bundleOf } from './data-converter.ts'

const root = new URL('../../', import.meta.url)
const cache = new URL('node_modules/.cache/document-relay/', root)

/** Returns a digest of all that the bundle may contain: the sources of the checkout and the versions of the packages. */
const digestOfSources = async (): Promise<string> => {
  const hash = createHash('sha256').update(await readFile(new URL('package-lock.json', root)))
  for (const folder of ['src/', 'workflows/']) {
    const names = (await readdir(new URL(folder, root), { recursive: true })).filter((name) => name.endsWith('.ts')).toSorted()
    for (const name of names) hash.update(name).update(await readFile(new URL(folder + name, root)))
  }
  return hash.digest('hex').slice(0, 32)
}

/**
 * Bundles the workflows of a checkout. That takes 5 to 12 seconds, so the bundle is kept in node_modules until the sources change.
 * @returns the code of the bundle
 */
export const bundleCheckout = async (): Promise<string> => {
  const file = new URL(`workflows-${await digestOfSources()}.js`, cache)
  const kept = await readFile(file, 'utf8').catch(() => undefined)
  if (kept !== undefined) return kept
  const { code } = await bundleWorkflowCode({
    ...bundleOf(fileURLToPath(new URL('workflows/index.ts', root))),
    logger: new DefaultLogger('WARN'),
  })
  await keep(file, code).catch(() => {
    // The checkout cannot be written to. The next start bundles again.
  })
  return code
}

const keep = async (file: URL, code: string) => {
  await mkdir(cache, { recursive: true })
  const outdated = (await readdir(cache)).filter((name) => name.startsWith('workflows-'))
  const unfinished = new URL(`${file.href}.${process.pid}`)
  await writeFile(unfinished, code)
  await rename(unfinished, file)
  for (const name of outdated) await rm(new URL(name, cache), { force: true })
}
