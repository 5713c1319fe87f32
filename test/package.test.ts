import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { findMismatches, places } from '../script/check-release.ts'
import { version } from '../src/base/version.ts'
import { debianPrograms } from './support/tools.ts'

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

test('no page combines --global with --omit, which npm ignores there', async () => {
  const folder = new URL('../docs/', import.meta.url)
  const pages = (await readdir(folder)).filter((name) => name.endsWith('.md')).map((name) => new URL(name, folder))
  const texts = await Promise.all([...pages, new URL('../README.md', import.meta.url)].map((page) => readFile(page, 'utf8')))
  const commands = texts.flatMap((text) => text.match(/^.*npm install .*--omit.*$/gm) ?? [])
  expect(commands.length).toBeGreaterThan(2)
  expect(commands.filter((command) => /--global|\s-g\b/.test(command))).toEqual([])
})

test('docs/install.md makes an installation by npm as small as the image, with the commands of the Dockerfile', async () => {
  const dockerfile = await readFile(new URL('../Dockerfile', import.meta.url), 'utf8')
  const commands = [...dockerfile.matchAll(/^RUN ((?:cd|find) node_modules\b(?:.*\\\n)*.*)$/gm)].map(([, command]) => command!)
  const [native, maps] = commands
  expect(commands).toHaveLength(2)
  expect(await readFile(new URL('../docs/install.md', import.meta.url), 'utf8')).toContain(`(${native})\n${maps}\n`)
})

test('only a tag with the version that every file states, and with a section of the changelog, is released', async () => {
  // The changelog gets its section with the release.
  const others = (await findMismatches(`v${version}`)).filter((line) => !line.startsWith('CHANGELOG.md'))
  expect(others).toEqual([])
  expect(await findMismatches('v99.0.0')).toEqual([
    ...Object.keys(places).map((path) => `${path} has version ${version}, the tag is v99.0.0`),
    'CHANGELOG.md has no section [99.0.0]',
  ])
})

interface Step {
  uses?: string
  with?: Record<string, unknown>
  run?: string
  env?: Record<string, string>
}

interface Job {
  needs?: string | string[]
  strategy?: { matrix: Record<string, string[]> }
  uses?: string
  permissions?: Record<string, string>
  steps?: Step[]
}

interface Workflow {
  on: Record<string, object | null>
  permissions: Record<string, string>
  jobs: Record<string, Job>
}

const readWorkflow = async (name: string) =>
  parse(await readFile(new URL(`../.github/workflows/${name}.yml`, import.meta.url), 'utf8')) as Workflow
const commandsOf = ({ run }: Step) => run?.trim().split('\n') ?? []

test('every workflow names the actions of others by their commit, with the version beside it', async () => {
  const folder = new URL('../.github/workflows/', import.meta.url)
  const lines = (await Promise.all((await readdir(folder)).map((file) => readFile(new URL(file, folder), 'utf8')))).join('\n').split('\n')
  const used = lines.filter((line) => /^\s*(?:- )?uses: (?!\.\/)/.test(line))
  expect(used.length).toBeGreaterThan(20)
  for (const line of used) expect(line).toMatch(/uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
})

describe('the release workflow', () => {
  let workflow: Workflow
  let steps: Step[]
  beforeAll(async () => {
    workflow = await readWorkflow('release')
    steps = workflow.jobs['publish']!.steps!
  })

  test('publishes every package with provenance after the check of the version, the tests and the question for advisories', () => {
    const { version: check, test, 'release-tests': releaseTests, publish } = workflow.jobs
    expect(check!.steps!.flatMap(commandsOf)).toEqual(['node script/check-release.ts "$GITHUB_REF_NAME"'])
    expect(test).toEqual({ needs: 'version', uses: './.github/workflows/test.yml' })
    expect(releaseTests).toEqual({ needs: 'version', uses: './.github/workflows/release-tests.yml' })
    expect(workflow.jobs['audit']).toEqual({ needs: 'version', uses: './.github/workflows/audit.yml' })
    expect(publish!.needs).toEqual(['test', 'release-tests', 'audit'])
    expect(commandsOf(steps.at(-1)!)).toEqual([
      'npm publish --provenance --access public --workspace clients/check-source',
      'npm publish --provenance --access public --workspace clients/typescript',
      'npm publish --provenance --access public',
    ])
  })

  test('builds the client for Python, checks it and publishes it as a trusted publisher after the same tests', () => {
    const { needs, steps: pythonSteps } = workflow.jobs['publish-python']!
    expect(needs).toEqual(['test', 'release-tests', 'audit'])
    expect(commandsOf(pythonSteps!.at(-2)!).slice(1)).toEqual([
      'python3 -m build --outdir dist clients/python',
      'python3 -m twine check --strict dist/*',
    ])
    expect(pythonSteps!.at(-1)).toMatchObject({
      uses: expect.stringMatching(/^pypa\/gh-action-pypi-publish@/) as string,
      with: { 'packages-dir': 'dist' },
    })
  })

  test('pushes and signs image and chart after the same tests, and names the image in the chart', async () => {
    const { needs, steps: imageSteps } = workflow.jobs['publish-image']!
    expect(needs).toEqual(['test', 'release-tests', 'audit'])
    const [build, write, push] = imageSteps!.slice(-3)
    // The image, and the one with the Temporal server.
    expect(commandsOf(build!).filter((command) => command.startsWith('cosign '))).toHaveLength(2)
    for (const step of [build!, push!]) expect(commandsOf(step).at(-1)).toMatch(/^cosign sign --yes "\$\w+[^ ]*@\$/)
    const folder = await mkdtemp(join(tmpdir(), 'relay-release-'))
    try {
      const values = 'deploy/helm/document-relay/values.yaml'
      await mkdir(join(folder, values, '..'), { recursive: true })
      await copyFile(new URL(`../${values}`, import.meta.url), join(folder, values))
      const variables = { ...process.env, IMAGE: 'images.example/acme/document-relay' }
      await promisify(execFile)('bash', ['-e', '-c', write!.run!], { cwd: folder, env: variables })
      const { image } = parse(await readFile(join(folder, values), 'utf8')) as { image: { repository: string } }
      expect(image.repository).toBe('images.example/acme/document-relay')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('builds the image on a base that its digest names, and on none without', async () => {
    const imageSteps = workflow.jobs['publish-image']!.steps!
    const at = imageSteps.findIndex((step) => commandsOf(step).some((command) => command.startsWith('docker buildx build')))
    expect(commandsOf(imageSteps[at]!)[0]).toContain('--build-arg "BASE_IMAGE=$BASE_IMAGE"')
    const folder = await mkdtemp(join(tmpdir(), 'relay-release-'))
    const environment = join(folder, 'environment')
    const name = async (answer: string) => {
      // In the place of the registry, which no test reaches.
      await writeFile(join(folder, 'docker'), `#!/bin/sh\n${answer}\n`, { mode: 0o755 })
      const variables = { ...process.env, PATH: `${folder}:${process.env['PATH']}`, GITHUB_ENV: environment }
      await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', imageSteps[at - 1]!.run!], { env: variables })
      return readFile(environment, 'utf8')
    }
    try {
      for (const answer of ['true', 'exit 1', 'echo latest']) await expect(name(answer)).rejects.toThrow('Command failed')
      expect(await name('echo sha256:1234')).toBe('BASE_IMAGE=node:24-bookworm-slim@sha256:1234\n')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('runs no script of an installed package in a job that may sign', () => {
    const signing = Object.values(workflow.jobs).filter(({ permissions }) => permissions?.['id-token'] === 'write')
    const installing = signing
      .flatMap(({ steps: ofJob = [] }) => ofJob.flatMap(commandsOf))
      .filter((command) => /\b(npm|pip) (install|ci)\b/.test(command))
    expect(installing).not.toEqual([])
    for (const command of installing) expect(command).toMatch(/--ignore-scripts|--only-binary :all:/)
  })

  test('allows only the jobs that publish to sign', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' })
    const allowed = Object.entries(workflow.jobs).filter(([, { permissions }]) => permissions !== undefined)
    const permissions = { contents: 'read', 'id-token': 'write' }
    expect(allowed).toEqual([
      ['publish', expect.objectContaining({ permissions })],
      ['publish-python', expect.objectContaining({ permissions })],
      ['publish-image', expect.objectContaining({ permissions: { ...permissions, packages: 'write' } })],
    ])
  })

  test('signs in to the registry of npm before it publishes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'relay-release-'))
    try {
      const variables = { ...process.env, npm_config_registry: 'https://packages.example/npm/' }
      await writeFile(join(folder, 'package.json'), '{}')
      await promisify(execFile)('bash', ['-e', '-c', steps.at(-2)!.run!], { cwd: folder, env: variables })
      expect(await readFile(join(folder, '.npmrc'), 'utf8')).toBe('//packages.example/npm/:_authToken=${NODE_AUTH_TOKEN}\n')
      expect(steps.at(-1)!.env).toHaveProperty('NODE_AUTH_TOKEN')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('writes its repository into every package before it publishes them', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'relay-release-'))
    try {
      const address = 'https://git.example/acme/document-relay'
      const { workspaces } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as { workspaces: string[] }
      const manifests = ['', ...workspaces].map((path) => join(path, 'package.json'))
      for (const path of manifests) {
        await mkdir(join(folder, path, '..'), { recursive: true })
        await copyFile(new URL(`../${path}`, import.meta.url), join(folder, path))
      }
      const { run: script, env } = steps.at(-3)!
      expect(env).toEqual({ REPOSITORY: '${{ github.server_url }}/${{ github.repository }}' })
      await promisify(execFile)('bash', ['-e', '-c', script!], {
        cwd: folder,
        env: { ...process.env, REPOSITORY: address },
      })
      const repository = { type: 'git', url: `git+${address}.git` }
      const written = await Promise.all(manifests.map(async (path) => JSON.parse(await readFile(join(folder, path), 'utf8')) as object))
      expect(written).toEqual([
        expect.objectContaining({ name: 'document-relay', repository, bugs: { url: `${address}/issues` }, homepage: `${address}#readme` }),
        expect.objectContaining({ name: 'content-server-check', repository: { ...repository, directory: 'clients/check-source' } }),
        expect.objectContaining({ name: 'document-relay-client', repository: { ...repository, directory: 'clients/typescript' } }),
      ])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

test('a change is tested with every package of Debian that tests use, and may only read the repository', async () => {
  const { on, permissions, jobs } = await readWorkflow('test')
  expect(on).toEqual({ push: { branches: ['main'] }, pull_request: null, workflow_call: null })
  expect(permissions).toEqual({ contents: 'read' })
  const commands = jobs['test']!.steps!.flatMap(commandsOf)
  expect(commands.at(-1)).toBe('.ci/run')
  const installed = commands.flatMap((command) => /^sudo apt-get install (.*)$/.exec(command)?.[1]!.split(' ') ?? [])
  expect(installed).toEqual(expect.arrayContaining(Object.values(debianPrograms).map((program) => program.package)))
})

test('the tier release, and each screen of the console, are tested on main and for a change of a release test, with the same packages of Debian', async () => {
  const { on, permissions, jobs } = await readWorkflow('release-tests')
  const paths = expect.arrayContaining(['Dockerfile', 'package.json', 'migrations/**', 'test/**/*.release.test.ts'])
  expect(on).toEqual({ push: { branches: ['main'] }, pull_request: { paths }, workflow_call: null })
  expect(permissions).toEqual({ contents: 'read' })
  const commands = jobs['release']!.steps!.flatMap(commandsOf)
  expect(commands.slice(-2)).toEqual(['.ci/run release', 'script/test system test/console'])
  const { jobs: ofChange } = await readWorkflow('test')
  const install = (command: string) => command.startsWith('sudo apt-get install ')
  expect(commands.filter(install)).toEqual(ofChange['test']!.steps!.flatMap(commandsOf).filter(install))
})

test('the oldest Node that is promised is the one that CI runs the unit and db tests on, and that the scripts accept', async () => {
  const read = (path: string) => readFile(new URL(`../${path}`, import.meta.url), 'utf8')
  const { engines } = JSON.parse(await read('package.json')) as { engines: { node: string } }
  const [, oldest, major, minor] = /^>=((\d+)\.(\d+))$/.exec(engines.node)!
  const { steps = [] } = (await readWorkflow('test')).jobs['oldest-node']!
  expect(steps.map((step) => step.with?.['node-version']).filter(Boolean)).toEqual([oldest])
  expect(steps.flatMap(commandsOf)).toEqual(expect.arrayContaining(['script/test unit', 'script/test db']))
  const script = await read('script/lib')
  expect(script).toContain(`major > ${major} || (major === ${major} && minor >= ${minor})`)
  for (const text of [script, await read('README.md'), await read('CONTRIBUTING.md'), await read('docs/install.md')]) {
    expect(text).toContain(oldest)
  }
})

test('the unit tests run on each platform that README.md names', async () => {
  const { strategy, steps = [] } = (await readWorkflow('test')).jobs['platforms']!
  expect(strategy!.matrix).toEqual({ os: [expect.stringMatching(/-arm$/), expect.stringMatching(/^macos-/)] })
  expect(steps.flatMap(commandsOf).at(-1)).toBe('script/test unit')
})

test('advisories are asked for every week, and for a change of the packages', async () => {
  const { on, permissions, jobs } = await readWorkflow('audit')
  expect(Object.keys(on)).toContain('schedule')
  expect(on['pull_request']).toEqual({ paths: ['package-lock.json'] })
  expect(permissions).toEqual({ contents: 'read' })
  expect(jobs['audit']!.steps!.flatMap(commandsOf)).toEqual(['npm run audit'])
})
