import { readFile } from 'node:fs/promises'

interface Locked {
  dev?: boolean
  optional?: boolean
  devOptional?: boolean
}

test('a production installation has no package that reports installations', async () => {
  const lock = JSON.parse(await readFile(new URL('../package-lock.json', import.meta.url), 'utf8')) as { packages: Record<string, Locked> }
  const inProduction = Object.entries(lock.packages).filter(([, { dev }]) => !dev)
  expect(inProduction.length).toBeGreaterThan(100)
  expect(inProduction.map(([path]) => path).filter((path) => /scarf/.test(path))).toEqual([])
})
