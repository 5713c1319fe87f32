import { check } from '../../faults/check.ts'
import { startInstallation } from '../../faults/installation.ts'
import { rows } from '../../faults/rows/index.ts'
import { runRow } from '../../faults/run-row.ts'
import type { Kind, Target } from '../../faults/targets.ts'
import { disposable } from '../support/disposable.ts'
import { share } from '../support/share.ts'

// The rows of the fault table that tell most in the shortest time, with one API process and one worker. How fast an installation
// recovers is measured by script/faults: a busy machine would make it a matter of luck here.

const kinds: Kind[] = ['objstore', 'sftp', 'webhook']
const settleLimitMs = 240_000
const testTimeoutMs = 600_000

const installation = share(
  disposable(await startInstallation({ say: () => {}, fromSource: true, replicas: 1, kinds }), (each) => each.stop()),
)

test.each(['same-document-at-once', 'temporal-crashed', 'everything-killed', 'followed-through-faults'])(
  'no acknowledged document is lost, altered or stuck: %s',
  async (name) => {
    const row = rows.find((one) => one.name === name)!
    const { counts, findings, shortfalls } = await runRow(installation, row, { seed: '1', isShort: true, settleLimitMs })
    expect({ ...counts, findings }).toMatchObject({ lost: 0, altered: 0, stuck: 0 })
    expect(counts!.acknowledged).toBeGreaterThan(0)
    // Of programs that follow events, and of workflows that the relay has terminated.
    expect(shortfalls.filter((text) => /event|terminated/.test(text))).toEqual([])
  },
  testTimeoutMs,
)

test('the checker finds documents that are missing, altered, duplicated and undelivered', async () => {
  const workspace = await installation.createWorkspace('checker', ['webhook'], { configs: {}, settings: {} })
  const target = (held: { docId: string; sha256: string }[]): Target => ({
    ...installation.targets.all.webhook,
    holdings: async () => held,
  })
  const sent = (docId: string) => ({
    docId,
    sha256: 'right',
    sizeBytes: 1,
    outcome: 'acknowledged' as const,
    answer: '201',
    durationMs: 1,
    answeredAt: Date.now(),
  })
  const { counts } = await check(
    installation,
    workspace.id,
    [sent('A'), sent('B')],
    [
      target([
        { docId: 'A', sha256: 'right' },
        { docId: 'A', sha256: 'wrong' },
      ]),
    ],
    { failed: new Set() },
  )
  expect(counts).toEqual({ acknowledged: 2, lost: 2, altered: 1, duplicated: 1, stuck: 0, refused: 0 })
})
