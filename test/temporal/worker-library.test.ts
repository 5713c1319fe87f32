import { readFile } from 'node:fs/promises'
import { packagesOfBundler } from '../../src/temporal/copy-worker-library.ts'

type Dependencies = Record<string, string>
const readJson = async (path: string) => JSON.parse(await readFile(new URL(`../../${path}`, import.meta.url), 'utf8'))
const relay = (await readJson('package.json')) as { dependencies: Dependencies; devDependencies: Dependencies }
const worker = (await readJson('node_modules/@temporalio/worker/package.json')) as { version: string; dependencies: Dependencies }

test('the relay depends on what the worker of the Temporal SDK needs, in the same versions, but for its bundler', () => {
  const needed = Object.entries(worker.dependencies).filter(([name]) => !packagesOfBundler.includes(name))
  expect(Object.keys(worker.dependencies)).toEqual(expect.arrayContaining(packagesOfBundler))
  expect(relay.dependencies).toMatchObject(Object.fromEntries(needed))
  expect(relay.devDependencies['@temporalio/worker']).toBe(worker.version)
})

test('an installation without optional packages has none of the bundler', async () => {
  const { packages } = (await readJson('package-lock.json')) as { packages: Record<string, { dev?: true; devOptional?: true }> }
  const installed = ['@temporalio/worker', ...packagesOfBundler].filter((name) => {
    const { dev, devOptional } = packages[`node_modules/${name}`]!
    return !(dev ?? devOptional)
  })
  expect(installed).toEqual([])
})
