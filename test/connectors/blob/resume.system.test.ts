import { createBlob } from '../../../src/connectors/blob/index.ts'
import { DeliveryError, type DeliveryResult, type Payload } from '../../../src/connectors/connector.ts'
import { createEntraTokens } from '../../../src/connectors/shared/entra-tokens.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startAzurite } from '../../support/azurite.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import { contextOf, largePayload, MiB } from '../payloads.ts'

const blob = createBlob(createEntraTokens(), createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const server = await startAzurite()
afterAll(async () => {
  await server.stop()
  await outbound.close()
})

const busy = (status = 503) => ({
  status,
  headers: { 'x-ms-request-id': 'r1', 'x-ms-error-code': status === 503 ? 'ServerBusy' : 'SomethingNew' },
})

/** Attempts as the workflow makes them: each gets what the last one has saved. @returns the failures before the success */
const attempts = async (payload: Payload, port: number) => {
  const target = {
    config: blob.config.parse({ account_url: `http://127.0.0.1:${port}/${server.accountName}`, container: server.container }),
    credentials: blob.credentials.parse({ account_key: server.accountKey }),
  }
  let saved: unknown
  const errors: DeliveryError[] = []
  for (;;) {
    const context = contextOf(outbound, { saved, save: (state) => void (saved = state) })
    const result = await blob.deliver({ ...payload, attempt: errors.length + 1 }, target, context).catch((thrown: unknown) => thrown)
    if (!(result instanceof DeliveryError)) return { errors, result: result as DeliveryResult }
    errors.push(result)
    if (errors.length > 10) throw new Error(`never delivered: ${errors.map(({ message }) => message).join('; ')}`)
  }
}

describe('an upload in blocks goes on after an error that passes', () => {
  test('160 MiB with every 13th block refused arrive, and what is sent is at most 1.2 times as much', async () => {
    let blocks = 0
    await using store = await startRefusingStore(server.port, (_, { searchParams }) => {
      if (searchParams.get('comp') !== 'block') return undefined
      blocks += 1
      return blocks % 13 === 0 ? busy() : undefined
    })
    const payload = largePayload(160 * MiB)
    const { errors } = await attempts(payload, store.port)
    expect(errors.map(({ code }) => code)).toEqual(['http_503'])
    expect(store.receivedBytes()).toBeLessThanOrEqual(1.06 * payload.sizeBytes)
    expect((await server.client.getBlobClient(payload.path).getProperties()).contentLength).toBe(payload.sizeBytes)
  })

  test.each([503, 403])('a commit that is refused with %i is repeated without the blocks', async (status) => {
    let commits = 0
    await using store = await startRefusingStore(server.port, (_, { searchParams }) => {
      if (searchParams.get('comp') !== 'blocklist') return undefined
      commits += 1
      return commits <= 2 ? busy(status) : undefined
    })
    const payload = largePayload(24 * MiB)
    const { errors, result } = await attempts(payload, store.port)
    expect(errors).toHaveLength(2)
    expect(result.bytesSent).toBe(0)
    expect(store.receivedBytes()).toBeLessThan(payload.sizeBytes + MiB)
  })
})
