import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildRelay, copyBuild, nextVersion } from '../../faults/build.ts'
import { waits } from '../../faults/open-waits.ts'
import { changedMigrations, runUpgrade } from '../../faults/upgrade.ts'
import { version } from '../../src/base/version.ts'
import { linesOfLevel } from '../support/log-lines.ts'

const testTimeoutMs = 600_000

describe('three API processes behind HAProxy and three workers', () => {
  test(
    'are replaced one by one under load: no request fails, and nothing is lost or delivered twice',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'relay-upgrade-'))
      try {
        const from = await buildRelay(join(folder, 'from'))
        const next = nextVersion(version)
        const to = await copyBuild(from, join(folder, 'to'), next)
        const { logs, ...result } = await runUpgrade({ from, to }, { haproxyProgram: process.env.TEST_HAPROXY_BIN!, say: () => {} })
        expect(result).toMatchObject({
          // The processes of the former version ran with the new schema until they were replaced.
          migrations: ['9999_expand_documents'],
          counts: { lost: 0, altered: 0, duplicated: 0, stuck: 0, refused: 0 },
          findings: [],
          // One delivery or more in each kind of wait.
          waited: { missing: [], repeated: [] },
          openWorkflows: 0,
          failedTasks: 0,
          proxy: { serverErrors: 0, brokenAnswers: 0 },
          reads: { failures: [] },
          versions: [version, next.version],
          finalVersions: Array(6).fill(next.version),
          crashes: 0,
        })
        expect(result.waited.sent).toBeGreaterThanOrEqual(waits.length)
        expect(result.counts.acknowledged).toBeGreaterThan(20)
        expect(result.reads.answered).toBeGreaterThan(50)
        expect(logs.flatMap((log) => linesOfLevel(log, ['error', 'fatal']))).toEqual([])
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
    testTimeoutMs,
  )

  test('are not upgraded between builds whose databases differ: a migration was edited in place', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'relay-upgrade-'))
    try {
      const build = async (name: string, sql: string) => {
        const migrations = join(folder, name, 'dist/migrations')
        await mkdir(migrations, { recursive: true })
        await writeFile(join(migrations, '0001_workspaces.sql'), sql)
        return { folder: join(folder, name), version }
      }
      const [from, same, edited] = [await build('from', 'create'), await build('same', 'create'), await build('edited', 'create more')]
      await writeFile(join(same.folder, 'dist/migrations/0002_routing.sql'), 'create')
      expect(await changedMigrations(from, same)).toEqual([])
      await expect(runUpgrade({ from, to: edited }, { haproxyProgram: '', say: () => {} })).rejects.toThrow(
        'different migrations of the same name: 0001_workspaces.sql',
      )
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
