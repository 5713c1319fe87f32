import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { findMismatches } from '../script/check-release.ts'
import { version } from '../src/version.ts'

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

test('the image is installed from the lock file, and the packages that it keeps are without those of the development', async () => {
  const [build = '', packages = '', image = ''] = (await readFile(new URL('../Dockerfile', import.meta.url), 'utf8'))
    .split(/^FROM .*$/m)
    .slice(1)
  for (const stage of [build, packages]) {
    expect(stage).toMatch(/^COPY package.json package-lock.json .*$/m)
    expect(stage).toMatch(/^RUN npm install --no-save .*\nRUN node script\/check-installed.ts$/m)
  }
  expect(packages).toMatch(/^RUN npm install .* --omit=dev --omit=optional$/m)
  expect(image).not.toMatch(/^RUN /m)
  expect(image).toContain('COPY --from=packages /app/node_modules ./node_modules\n')
})

test('only a tag with the version of both packages and a section of the changelog is released', async () => {
  // Both packages have the same version. The changelog gets its section with the release.
  const others = (await findMismatches(`v${version}`)).filter((line) => !line.startsWith('CHANGELOG.md'))
  expect(others).toEqual([])
  expect(await findMismatches('v99.0.0')).toEqual([
    `document-relay has version ${version}, the tag is v99.0.0`,
    `document-relay-client has version ${version}, the tag is v99.0.0`,
    'CHANGELOG.md has no section [99.0.0]',
  ])
})

test('a release runs the tests first, and is published with provenance', async () => {
  const workflow = parse(await readFile(new URL('../.github/workflows/release.yml', import.meta.url), 'utf8')) as {
    permissions: object
    jobs: { publish: { steps: { run?: string }[] } }
  }
  expect(workflow.permissions).toMatchObject({ 'id-token': 'write' })
  const commands = workflow.jobs.publish.steps.flatMap(({ run }) => run?.trim().split('\n') ?? [])
  expect(commands).toEqual([
    'node script/check-release.ts "$GITHUB_REF_NAME"',
    'script/test',
    'npm publish --provenance --access public --workspace clients/typescript',
    'npm publish --provenance --access public',
  ])
})
