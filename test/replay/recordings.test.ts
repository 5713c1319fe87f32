import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parse } from 'yaml'
import { changesOfReleases } from './recordings.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

test('the recordings of releases are those that the releases were made with', () => {
  expect(changesOfReleases(root)).toEqual([])
})

test('CI compares them with the whole history', async () => {
  const { jobs } = parse(await readFile(join(root, '.github/workflows/test.yml'), 'utf8')) as {
    jobs: Record<string, { steps: { uses?: string; run?: string; with?: Record<string, unknown> }[] }>
  }
  const complete = Object.values(jobs).find(({ steps }) => steps.some(({ run }) => run === '.ci/run'))
  expect(complete?.steps.find(({ uses }) => uses?.startsWith('actions/checkout@'))?.with).toEqual({ 'fetch-depth': 0 })
})

describe('in a repository with a release', () => {
  const recording = '[{"workflowId":"document/acme"}]\n'
  let directory: string
  let repository: string
  const git = (cwd: string, ...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false', ...words], {
      cwd,
      // Without the configuration of the user.
      env: { PATH: process.env.PATH, HOME: directory },
      stdio: 'pipe',
    })
  const write = async (path: string, text = recording) => {
    await mkdir(join(repository, dirname(path)), { recursive: true })
    await writeFile(join(repository, path), text)
  }
  const commit = () => {
    git(repository, 'add', '--all')
    git(repository, 'commit', '--quiet', '--message', 'change')
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'recordings-'))
    repository = join(directory, 'repository')
    await mkdir(repository)
    git(repository, 'init', '--quiet', '--initial-branch', 'main')
    await write('test/replay/unreleased/bulk-retry.json')
    await write('test/replay/unreleased/window-closed.json')
    commit()
    await rename(join(repository, 'test/replay/unreleased'), join(repository, 'test/replay/0.1.0'))
    commit()
    await write('test/replay/unreleased/bulk-retry.json')
    commit()
  })
  afterEach(() => rm(directory, { recursive: true }))

  test('new recordings and the next release are no change', async () => {
    await write('test/replay/unreleased/bulk-retry.json', '[]\n')
    commit()
    await rename(join(repository, 'test/replay/unreleased'), join(repository, 'test/replay/0.2.0'))
    expect(changesOfReleases(repository)).toEqual([])
    commit()
    expect(changesOfReleases(repository)).toEqual([])
  })

  const path = 'test/replay/0.1.0/window-closed.json'
  const changes: [name: string, path: string, make: () => Promise<void>][] = [
    ['a changed recording', path, () => appendFile(join(repository, path), ' ')],
    ['a removed recording', path, () => rm(join(repository, path))],
    ['an added recording', 'test/replay/0.1.0/late.json', () => write('test/replay/0.1.0/late.json')],
  ]
  test.each(changes)('%s is a change, in the working tree and in a commit', async (_, changed, make) => {
    await make()
    expect(changesOfReleases(repository)).toEqual([changed])
    commit()
    expect(changesOfReleases(repository)).toEqual([changed])
    await write('test/replay/unreleased/window-closed.json')
    commit()
    expect(changesOfReleases(repository)).toEqual([changed])
  })

  test('a change on another branch is one after the merge', async () => {
    git(repository, 'checkout', '--quiet', '-b', 'other')
    await appendFile(join(repository, path), ' ')
    commit()
    git(repository, 'checkout', '--quiet', 'main')
    await write('test/replay/unreleased/window-closed.json')
    commit()
    git(repository, 'merge', '--quiet', '--no-edit', 'other')
    expect(changesOfReleases(repository)).toEqual([path])
  })

  test('the folder of a release can be removed as a whole', async () => {
    await rm(join(repository, 'test/replay/0.1.0'), { recursive: true })
    expect(changesOfReleases(repository)).toEqual([])
    commit()
    expect(changesOfReleases(repository)).toEqual([])
  })

  test('a shallow clone is compared with its oldest commit, and a fresh one with the first', async () => {
    await appendFile(join(repository, path), ' ')
    commit()
    const clone = join(directory, 'clone')
    const url = pathToFileURL(repository).href
    git(directory, 'clone', '--quiet', url, clone)
    expect(changesOfReleases(clone)).toEqual([path])
    await rm(clone, { recursive: true })
    git(directory, 'clone', '--quiet', '--depth', '1', url, clone)
    expect(changesOfReleases(clone)).toEqual([])
    await appendFile(join(clone, path), ' ')
    expect(changesOfReleases(clone)).toEqual([path])
  })
})
