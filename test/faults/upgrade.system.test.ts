import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildRelay, copyBuild } from '../../faults/build.ts'
import { runUpgrade } from '../../faults/upgrade.ts'
import { version } from '../../src/version.ts'
import { linesOfLevel } from '../support/log-lines.ts'

const testTimeoutMs = 600_000

describe('three API processes behind HAProxy and three workers', () => {
  test(
    'are replaced one by one under load: no request fails, and nothing is lost or delivered twice',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'relay-upgrade-'))
      try {
        const to = await buildRelay(join(folder, 'to'))
        const from = await copyBuild(to, join(folder, 'from'), '0.0.0-before')
        const { logs, ...result } = await runUpgrade({ from, to }, { haproxyProgram: process.env.TEST_HAPROXY_BIN!, say: () => {} })
        expect(result).toMatchObject({
          counts: { lost: 0, altered: 0, duplicated: 0, stuck: 0, refused: 0 },
          findings: [],
          proxy: { serverErrors: 0, brokenAnswers: 0 },
          reads: { failures: [] },
          versions: ['0.0.0-before', version],
          finalVersions: Array(6).fill(version),
          crashes: 0,
        })
        expect(result.counts.acknowledged).toBeGreaterThan(20)
        expect(result.reads.answered).toBeGreaterThan(50)
        expect(logs.flatMap((log) => linesOfLevel(log, ['error', 'fatal']))).toEqual([])
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
    testTimeoutMs,
  )
})
