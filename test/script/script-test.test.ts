import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Returns the test files that script/test would run. */
const filesOf = async (...args: string[]): Promise<string[]> => {
  const { stdout } = await promisify(execFile)(`${root}script/test`, ['--no-check', ...args, '--listTests'], { cwd: root })
  return stdout
    .split('\n')
    .filter((line) => line.startsWith(root))
    .map((line) => line.slice(root.length))
}
const endings = (files: string[]) => new Set(files.map((file) => /(\.\w+)?\.test\.ts$/.exec(file)![1] ?? ''))

describe('script/test', () => {
  test('explains itself with --help, and runs nothing', async () => {
    const { stdout, stderr } = await promisify(execFile)(`${root}script/test`, ['db', '--help'])
    expect(stdout).toMatch(/^script\/test \[--no-check\] \[unit\|db\|system\|release\] \[PATH\]/)
    expect(stderr).toBe('')
  })

  test('runs the tiers of a change without arguments, and the release tier by its name', async () => {
    const [change, release] = await Promise.all([filesOf(), filesOf('release')])
    expect(endings(change)).toEqual(new Set(['', '.db', '.system']))
    expect(endings(release)).toEqual(new Set(['.release']))
    expect(release).toContain('test/image.release.test.ts')
    expect(release).toContain('test/event-loop/event-loop.measured.release.test.ts')
    const slowFiles = JSON.parse(await readFile(`${root}test/support/slow-files.json`, 'utf8')) as string[]
    expect(slowFiles.filter((file) => ![...change, ...release].includes(file))).toEqual([])
  })

  test.each([
    [['unit', 'test/receiver'], ['']],
    [['test/receiver', 'db'], ['.db']],
    [
      ['unit', 'db', 'test/receiver'],
      ['', '.db'],
    ],
    [['test/workflows', 'system'], ['.system']],
    [['test/faults'], ['', '.release']],
  ])('with %j runs these tests and no others', async (args, tiers) => {
    const files = await filesOf(...args)
    expect(endings(files)).toEqual(new Set(tiers))
    const path = args.find((word) => word.startsWith('test/'))!
    expect(files.filter((file) => !file.startsWith(`${path}/`))).toEqual([])
  })
})
