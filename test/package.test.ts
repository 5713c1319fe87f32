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

test('the image is installed from the lock file, without the packages of the development', async () => {
  const [build = '', run = ''] = (await readFile(new URL('../Dockerfile', import.meta.url), 'utf8')).split(/^FROM .*$/m).slice(1)
  // The second command installs the versions of the lock file, too, where npm ci refuses it.
  expect(build).toMatch(/^COPY package.json package-lock.json .*$/m)
  expect(build).toMatch(/^RUN npm ci .*\|\| npm install --no-save /m)
  expect(build).toContain('npm prune --omit=dev')
  expect(run).toMatch(/^USER node$/m)
})
