import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addSetting, type TemporalCluster } from './temporal-cluster.ts'

const present = 'matching.useNewMatcher:\n  - value: true\nlimit.size:\n  - value: 10\n    constraints:\n      namespace: other\n'

test('a setting that the cluster has is kept, and refused with another value or for another namespace', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-cluster-'))
  const file = join(folder, 'dynamic-config.yaml')
  try {
    await writeFile(file, present)
    const add = (setting: string) => addSetting({ folder } as TemporalCluster, 'mine', setting)
    await add('matching.useNewMatcher=true')
    await expect(add('matching.useNewMatcher=false')).rejects.toThrow('has the setting matching.useNewMatcher already')
    await expect(add('limit.size=10')).rejects.toThrow('has the setting limit.size already')
    expect(await readFile(file, 'utf8')).toBe(present)
  } finally {
    await rm(folder, { recursive: true })
  }
})
