import { startServerWalk } from './server-walk.ts'
import { comparable } from './walk.ts'

const { baseUrl, walk, findLeft } = await startServerWalk()

test('script/server is reached at 127.0.0.1 only', async () => {
  expect((await fetch(`${baseUrl}/healthz`)).status).toBe(200)
  // Another loopback address, at which a server that listens on all addresses would answer.
  await expect(fetch(`${baseUrl.replace('127.0.0.1', '127.0.0.2')}/healthz`)).rejects.toThrow('fetch failed')
})

test.each(['docs/api.md', 'README.md'])(
  'every command of %s prints what the page promises',
  async (page) => {
    const steps = await walk(page)
    expect(steps.filter(({ answer }) => answer !== undefined)).not.toEqual([])
    for (const { commands, answer, output } of steps) {
      if (answer !== undefined) expect({ commands, answer: comparable(output) }).toEqual({ commands, answer: comparable(answer) })
    }
  },
  300_000,
)

test('every command of the pages was run', async () => {
  expect(await findLeft('test/docs/api.system.test.ts')).toEqual([])
})
