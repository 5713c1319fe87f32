import { workspaceSettings } from '../../src/domain/settings.ts'
import { checkRate } from '../../src/receiver/quota.ts'
import { testConfig } from '../support/factories.ts'

test.each([
  [null, '60', 60],
  [30, '60', 30],
  [90, '60', 60],
  [90, '0', 90],
  [null, '0', Infinity],
])('of the limits %p of a workspace and %s of the installation, the rate %p applies', (own, installation, expected) => {
  const config = testConfig({ RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: installation })
  const settings = workspaceSettings({ receiver_max_requests_per_minute: own })
  const taken: number[] = []
  const rateLimit = { take: (_: string, perMinute: number) => taken.push(perMinute) * 0 }
  checkRate({ id: 'a', settings }, rateLimit, config)
  expect(taken).toEqual([expected])
})
