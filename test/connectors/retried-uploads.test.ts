import type { Connector, DeliveryResult, Payload, Target } from '../../src/connectors/connector.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import type { Double, DoubleResponse } from '../support/double.ts'
import { startDrive } from './drive/rig.ts'
import { contextOf, failure, largePayload, MiB } from './payloads.ts'
import { startTeamsite } from './teamsite/rig.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
const [teamsite, drive] = await Promise.all([startTeamsite(), startDrive()])
afterAll(async () => {
  await outbound.close()
  await Promise.all([teamsite.stop(), drive.stop()])
})

interface Service {
  kind: string
  connector: Connector<never, never>
  target(): Target<unknown, unknown>
  double: Double
  part: RegExp
  query: RegExp
  refused(status: number, headers?: Record<string, string>): DoubleResponse
  unfinished(): number
  stored(): { sha256: string }[]
  reset(): void
}

const services: Service[] = [
  {
    kind: 'teamsite',
    connector: teamsite.connector as Connector<never, never>,
    target: () => teamsite.target(),
    double: teamsite.double,
    part: /^PUT \/up\//,
    query: /^GET \/up\//,
    refused: (status, headers = {}) => ({ status, headers, json: { error: { code: 'generalException', message: 'says Graph' } } }),
    unfinished: () => teamsite.double.sessions.size,
    stored: () => [...teamsite.double.items.values()],
    reset: () => teamsite.reset(),
  },
  {
    kind: 'drive',
    connector: drive.connector as Connector<never, never>,
    target: () => drive.target(),
    double: drive.double,
    part: /^PUT \/upload/,
    query: /^PUT \/upload/,
    refused: (status, headers = {}) => ({
      status,
      headers,
      json: { error: { code: status, message: 'x', errors: [{ reason: 'backendError' }] } },
    }),
    unfinished: () => [...drive.double.sessions.values()].filter(({ done }) => !done).length,
    stored: () => [...drive.double.files.values()],
    reset: () => drive.reset(),
  },
]

describe.each(services)('an upload to $kind after a failure that passes', (service) => {
  const { double, part, query } = service
  beforeEach(() => service.reset())

  /** Makes attempts as a worker does: what one saves is given to the next. */
  const createAttempts = (payload: Payload) => {
    let [saved, bytesRead, attempts]: [unknown, number, number] = [undefined, 0, 0]
    const counted: Payload = {
      ...payload,
      open: (start) =>
        payload.open(start).on('data', (chunk: Buffer) => {
          bytesRead += chunk.length
        }),
    }
    return {
      bytesRead: () => bytesRead,
      attempts: () => attempts,
      attempt: (overrides: Parameters<typeof contextOf>[1] = {}): Promise<DeliveryResult> => {
        attempts += 1
        const given = saved
        let next: unknown
        const save = (state: unknown) => void (next = JSON.parse(JSON.stringify(state)))
        const context = contextOf(outbound, { saved: given, save, ...overrides })
        // As the worker does: an upload with which an attempt got nowhere is forgotten.
        return service.connector.deliver(counted, service.target() as never, context).finally(() => void (saved = next))
      },
    }
  }

  test('continues where the target is: of 160 MiB with every 13th part refused, at most 1.2 times the bytes are sent', async () => {
    const payload = largePayload(160 * MiB)
    for (let times = 0; times < 3; times += 1) double.faults.push({ match: part, response: service.refused(503), times: 1, skip: 12 })
    const run = createAttempts(payload)
    let result: DeliveryResult | undefined
    while (!result && run.attempts() < 5) result = await run.attempt().catch(() => undefined)
    expect(service.stored()).toMatchObject([{ sha256: payload.sha256 }])
    expect(run.bytesRead() / payload.sizeBytes).toBeLessThan(1.2)
    expect(service.unfinished()).toBe(0)
  }, 180_000)

  test.each([
    ['429', 429, { 'retry-after': '2.5' }],
    ['500', 500, {}],
    ['423', 423, {}],
  ])('keeps the session after %s', async (_, status, headers: Record<string, string>) => {
    const payload = largePayload(21 * MiB)
    const run = createAttempts(payload)
    double.faults.push({ match: part, response: service.refused(status, headers), times: 1, skip: 1 })
    expect(await failure(run.attempt())).toMatchObject({ permanent: false })
    expect(service.unfinished()).toBe(1)
    expect((await run.attempt()).bytesSent).toBeLessThan(payload.sizeBytes)
    expect(service.stored()).toMatchObject([{ sha256: payload.sha256 }])
  })

  test('keeps the session if it cannot be asked for its position, and when the time of the attempt is over', async () => {
    const payload = largePayload(21 * MiB)
    const run = createAttempts(payload)
    double.faults.push({ match: part, response: service.refused(503), times: 1, skip: 1 })
    await failure(run.attempt())
    double.faults.push({ match: query, response: service.refused(503), times: 1 })
    expect(await failure(run.attempt())).toMatchObject({ code: 'http_503' })
    const timeout = new AbortController()
    const onProgress = () => timeout.abort(new DOMException('over', 'TimeoutError'))
    await expect(run.attempt({ signal: timeout.signal, onProgress })).rejects.toThrow('over')
    expect(service.unfinished()).toBe(1)
    expect((await run.attempt()).bytesSent).toBeLessThan(payload.sizeBytes)
  })

  test('gives the session up with the last attempt', async () => {
    const run = createAttempts(largePayload(21 * MiB))
    double.faults.push({ match: part, response: service.refused(503), times: 1, skip: 1 })
    await failure(run.attempt({ isLast: true }))
    expect(service.unfinished()).toBe(0)
  })

  test('begins another session after three faults in which nothing was stored', async () => {
    const payload = largePayload(21 * MiB)
    const run = createAttempts(payload)
    double.faults.push({ match: part, response: service.refused(503), times: 1, skip: 1 })
    await failure(run.attempt())
    for (let fault = 0; fault < 3; fault += 1) {
      expect(service.unfinished()).toBe(1)
      double.faults.push({ match: query, response: service.refused(500), times: 1 })
      await failure(run.attempt())
    }
    expect(service.unfinished()).toBe(0)
    expect((await run.attempt()).bytesSent).toBe(payload.sizeBytes)
  })

  test.each([400, 401, 404, 410])('begins another session if its position is answered with %i', async (status) => {
    const payload = largePayload(21 * MiB)
    const run = createAttempts(payload)
    double.faults.push({ match: part, response: service.refused(503), times: 1, skip: 1 })
    await failure(run.attempt())
    const response = { status, json: { error: { code: 'invalidRequest', message: 'x', errors: [{ reason: 'invalid' }] } } }
    double.faults.push({ match: query, response, times: 1 })
    expect((await run.attempt()).bytesSent).toBe(payload.sizeBytes)
    expect(service.stored()).toMatchObject([{ sha256: payload.sha256 }])
  })

  test('sends nothing again if the answer to the last part was lost', async () => {
    const payload = largePayload(21 * MiB)
    const run = createAttempts(payload)
    double.faults.push({ match: part, response: service.refused(503), times: 1, skip: 2, isLate: true })
    expect(await failure(run.attempt())).toMatchObject({ code: 'http_503' })
    expect((await run.attempt()).bytesSent).toBe(0)
    expect(service.stored()).toHaveLength(1)
  })
})
