import { startForwardProxy } from '../support/forward-proxy.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startInstallation } from '../support/installation.ts'
import { share } from '../support/share.ts'

// The processes of an installation in a network that lets nothing out but through a proxy.

const target = share(await startHttpTarget())
const proxy = await startForwardProxy()
afterAll(() => proxy.stop())
const { tenant } = share(
  // Without this list, loopback addresses are reached directly.
  await startInstallation({ RELAY_OUTBOUND_PROXY: proxy.urlWithLogin, RELAY_OUTBOUND_NO_PROXY: 'none.invalid' }),
)

test('the API tests a destination, and a worker delivers to it, through the proxy', async () => {
  const { wire, call, sendDocument } = await tenant('acme/proxied')
  const { repoId, destinationId } = await wire([`${target.origin}/in`])
  const authority = `127.0.0.1:${target.port}`

  expect((await call('POST', `/destinations/${destinationId}/test`)).json.data).toMatchObject({ status: 'success' })
  expect(proxy.targets).toEqual([authority])
  await sendDocument(repoId, 'delivered')
  expect(proxy.targets).toEqual([authority, authority])
  expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['{"type":"ping"}', 'hello'])
})
