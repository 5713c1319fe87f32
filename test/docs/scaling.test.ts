import { readFileSync } from 'node:fs'
import { dispatchShares } from '../../src/db/starts.ts'
import { maintenanceJobs } from '../../src/maintenance/jobs.ts'

const page = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8')
const limits = page.slice(page.indexOf('## What breaks at'))

/** Returns the seconds between two runs of a job. */
const intervalOf = (name: string): number =>
  maintenanceJobs({ RECONCILE_INTERVAL_MS: 1 }).find((job) => job.name === name)!.intervalMs / 1_000

test('what the page calculates with is what the code has', () => {
  expect(limits).toContain(`in ${dispatchShares} shares, so ${dispatchShares} workers begin deliveries`)
  expect(limits).toContain(`with a load of 23. It runs every ${intervalOf('check-incidents')} s`)
  expect(limits).toContain(`with 1,000 workspaces and 2,000 destinations, every ${intervalOf('compute-metrics')} s`)
  expect(limits).toContain(`0.5 s for 40,000. It runs every ${intervalOf('sweep-outbox')} s`)
  expect(intervalOf('apply-retention')).toBe(3_600)
})

test('each row names the files that it is about, which another test looks for', () => {
  const rows = [...limits.matchAll(/^\| (?!What \||---)[^|]+ \| ([^|]+) \|/gm)].map(([, where]) => where!)
  expect(rows.length).toBeGreaterThan(10)
  expect(rows.filter((where) => !/`(src|workflows|migrations)\//.test(where))).toEqual([])
})
