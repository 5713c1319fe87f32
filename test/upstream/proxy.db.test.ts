import { startForwardProxy } from '../support/forward-proxy.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const old = share(await startOldContentServer())
const proxy = await startForwardProxy()
afterAll(() => proxy.stop())
old.put('D1', { data: 'hello' })

test.each([
  ['directly at a private address, although targets are reached through a proxy', {}, false],
  ['through the proxy, where the installation has no such exception', { RELAY_OUTBOUND_NO_PROXY: 'none.invalid' }, true],
])('an upstream is reached %s', async (_, variables, isProxied) => {
  await using scene = await startScene({ variables: { RELAY_OUTBOUND_PROXY: proxy.urlWithLogin, ...variables } })
  const { call, repositoryId, source } = await scene.workspace()
  const { status } = await call('PATCH', `/repositories/${repositoryId}`, { upstream: { url: old.url, cont_rep: 'Z1' } })
  const before = proxy.targets.length
  expect([status, String((await source.get('D1')).body)]).toEqual([200, 'hello'])
  expect(proxy.targets.length > before).toBe(isProxied)
})
