import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { DeliveredCopy, Payload, StoredCopy } from '../../src/connectors/connector.ts'
import { minPartBytes } from '../../src/connectors/shared/upload-parts.ts'
import { receiptOf } from '../../src/delivery/receipt.ts'
import { pathSegment } from '../../src/domain/fan-out.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import type { Load } from '../support/busy-server.ts'
import { startForwardProxy } from '../support/forward-proxy.ts'
import { fullOr } from '../support/full-run.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { describePages } from './conformance-pages.ts'
import type { Job, Report } from './deliver-in-process.ts'
import { contextOf, failing, failure, largePayload, MiB, payloadOf, slowly, watched } from './payloads.ts'
import type { Rig, RunningTarget } from './rig.ts'

const awkwardNames = [
  'with  blanks inside .pdf',
  'Grüße aus Köln – 日本語 🧾.pdf',
  `both "double" and 'single'.pdf`,
  '100%.pdf',
  '100%25.pdf',
  'a+b.pdf',
  'a&b=c;d?e#f.pdf',
  '.hidden',
  '-rf',
  '~',
  '*.pdf',
  '[x]{y}$z`w`.pdf',
  'back\\slash.pdf',
  'back%5Cslash.pdf',
  'right\u202Eto-left.pdf',
  `${'long '.repeat(80)}.pdf`,
  `${'long '.repeat(80)}2.pdf`,
  'ü'.repeat(200),
]

const childProgram = fileURLToPath(new URL('./deliver-in-process.ts', import.meta.url))

/**
 * Delivers in a process that is killed after 60 % of the document.
 * @returns the state that the process had saved by then
 */
const deliverUntilKilled = async (payload: Payload, job: Omit<Job, 'payload'>): Promise<{ saved: unknown }> => {
  const child = fork(childProgram, { execArgv: ['--disable-warning=ExperimentalWarning'] })
  const exited = once(child, 'exit')
  const { open: _, receivedAt: __, ...plain } = payload
  child.send({ ...job, payload: plain } satisfies Job)
  let saved: unknown
  try {
    await new Promise<void>((resolve, reject) => {
      child.on('exit', () => reject(new Error('The process ended by itself')))
      child.on('message', (message: Report) => {
        if ('failed' in message) reject(new Error(message.failed))
        else if ('saved' in message) saved = message.saved
        else if (message.bytesSent > payload.sizeBytes * 0.6) resolve()
      })
    })
  } finally {
    child.kill('SIGKILL')
    await exited
  }
  return { saved }
}

const loopback = ['127.0.0.0/8', '::1/128']
// Half of the idle timeout of these tests, so that a busy machine does not break them.
const promptlyMs = 30_000
// The parts that an upload holds at a time, and garbage that has not been collected yet. A document in memory would
// take 256 MiB.
const growthMaxBytes = 160 * MiB

interface TestDocument {
  sizeBytes: number
  /** The position at which its source fails or its delivery is cancelled. */
  breaksOffAt: number
}

// A single part of every kind.
const small: TestDocument = { sizeBytes: MiB, breaksOffAt: MiB / 2 }
// More than two parts of every kind: parts have 8 MiB or 10 MiB.
const severalParts: TestDocument = { sizeBytes: 20 * MiB + 1, breaksOffAt: 10 * MiB }
// More parts than such an upload holds at a time, so that a part gets the memory of an earlier one. After five parts, the upload waits until
// one of them has been sent.
const manyParts: TestDocument = { sizeBytes: 6 * minPartBytes + 1, breaksOffAt: 5 * minPartBytes + 1 }

/** Tests that every connector must pass, against a running target. */
export const describeConnector = (rig: Rig) => {
  const against = rig.isDouble ? 'a double' : rig.against
  describe(`the ${rig.kind}${against === undefined ? '' : ` (against ${against})`} connector`, () => {
    const large = rig.holdsSeveralParts ? manyParts : severalParts
    const documents: [string, TestDocument][] = [
      ['small', small],
      ['large', large],
    ]
    let running: RunningTarget
    let outbound: OutboundGuard

    beforeAll(async () => {
      running = await rig.start()
      outbound = createOutboundGuard({ allowedCidrs: loopback })
    })
    beforeEach(() => running.reset())
    afterAll(async () => {
      await outbound.close()
      await running.stop()
    })

    const expectNothingUnfinished = async () => {
      if (!running.partsExpire) expect(await running.leftovers()).toEqual([])
    }
    const deliver = (payload: Payload, overrides: Parameters<typeof contextOf>[1] = {}, target = running.target()) =>
      running.connector.deliver(payload, target, contextOf(outbound, overrides))

    test.each([0, 1, 32 * 1024, 100_003])('delivers a document of %i bytes', async (sizeBytes) => {
      const payload = payloadOf(randomBytes(sizeBytes))

      const result = await deliver(payload)

      expect(result.bytesSent).toBe(sizeBytes)
      expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256, sizeBytes })
      expect(await running.leftovers()).toEqual([])
    })

    test('delivers a large document in bounded memory and reports progress', async () => {
      const sizeBytes = fullOr(256 * MiB, large.sizeBytes)
      const payload = largePayload(sizeBytes)
      const progress: number[] = []
      const before = process.memoryUsage().rss
      let peak = before

      const result = await deliver(payload, {
        onProgress: (bytes) => {
          progress.push(bytes)
          peak = Math.max(peak, process.memoryUsage.rss())
        },
      })

      expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256, sizeBytes })
      expect(peak - before).toBeLessThan(growthMaxBytes)
      expect(progress.length).toBeGreaterThan(10)
      expect(progress.at(-1)).toBe(sizeBytes)
    }, 180_000)

    test('keeps documents with awkward names apart, each with its own content', async () => {
      const payloads = awkwardNames.map((name) =>
        payloadOf(Buffer.from(`content of ${name}`), { path: `R 1/ä+%/${pathSegment(name)}`, docId: name }),
      )

      for (const payload of payloads) {
        const result = await deliver(payload)
        expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256 })
      }

      expect(await running.documents()).toHaveLength(awkwardNames.length)
    })

    test('the receipt names the object at the target and the digest of its bytes', async () => {
      for (const payload of [payloadOf(randomBytes(1_000)), largePayload(minPartBytes + 1)]) {
        const { sha256, sizeBytes } = payload
        const result = await deliver(payload)
        const { target, ...sent } = receiptOf({ ...result, sha256, sizeBytes }, 'attempt', payload.receivedAt)
        expect(sent).toEqual({ sha256, size_bytes: sizeBytes, attempt_id: 'attempt', answered_at: payload.receivedAt.toISOString() })
        expect(await (running.readByNames?.(target, result) ?? running.read(payload, result))).toMatchObject({ sha256, sizeBytes })
      }
    })

    test('reads what it has delivered, whole and in parts, and says that a document is not there', async () => {
      const { connector } = running
      expect(connector.read === undefined).toBe(connector.placeKeys === undefined)
      expect(connector.read === undefined).toBe(connector.placeOf === undefined)
      if (!connector.read) return
      for (const sizeBytes of [1_000, 5 * MiB + 1]) {
        const payload = largePayload(sizeBytes, { path: `R1/${sizeBytes}/data` })
        const copy: StoredCopy = { ...payload, location: (await deliver(payload)).path }
        const readIn = async (start: number, end: number) => {
          const pieces: Buffer[] = []
          const take = async (bytes: AsyncIterable<Buffer>) => {
            for await (const piece of bytes) pieces.push(piece)
          }
          const isThere = await connector.read!(copy, { start, end }, running.target(), contextOf(outbound), take)
          return isThere ? Buffer.concat(pieces) : undefined
        }
        const whole = Buffer.concat(await payload.open().toArray())
        expect((await readIn(0, sizeBytes - 1))?.equals(whole)).toBe(true)
        expect((await readIn(300, sizeBytes - 300))?.equals(whole.subarray(300, sizeBytes - 299))).toBe(true)
        expect((await readIn(sizeBytes - 1, sizeBytes + 10))?.equals(whole.subarray(sizeBytes - 1))).toBe(true)
        expect((await readIn(sizeBytes, sizeBytes))?.length).toBe(0)

        await running.reset()
        expect(await readIn(0, sizeBytes - 1)).toBeUndefined()
      }
    }, 60_000)

    test('stores the content type if the target has a field for it', async () => {
      const payload = payloadOf(Buffer.from('x'), { contentType: 'text/plain; charset=utf-8' })
      const stored = await running.read(payload, await deliver(payload))
      expect(stored?.contentType).toBe(running.keepsContentType ? 'text/plain; charset=utf-8' : undefined)
    })

    test('stores the properties of a document, and brings later ones without its bytes', async () => {
      const { connector, properties } = running
      expect(connector.properties === undefined).toBe(properties === undefined)
      if (!connector.properties || !properties) return
      const [vendor, number] = properties.names
      expect(properties.names.map(connector.properties.nameIssue)).toEqual([undefined, undefined])
      const clean = (name: string, value: string) => connector.properties!.clean(value, name)
      const payload = payloadOf(randomBytes(1_000), { properties: { [vendor]: clean(vendor, 'Müller & Söhne, 日本 / GmbH\u0007') } })

      const result = await deliver(payload)

      expect(result.propertiesError).toBeUndefined()
      expect(await properties.read(payload, result)).toEqual(payload.properties)
      await properties.add?.(payload, result, { ...payload.properties, [properties.foreign!]: 'yes' })
      const later = { ...payload.properties, [number]: clean(number, '51056001'.repeat(100)) }
      const copy: DeliveredCopy = { ...payload, location: result.path, properties: later, foundAt: payload.receivedAt }
      for (let run = 0; run < 2; run += 1) {
        await connector.updateMetadata!(copy, running.target(), contextOf(outbound))
        expect(await properties.read(payload, result)).toEqual({ ...later, ...(properties.foreign && { [properties.foreign]: 'yes' }) })
      }
      expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256 })
      expect(await running.leftovers()).toEqual([])
      const elsewhere = { ...copy, location: `${result.path}.moved`.replace('drive.google.com', 'drive.example') }
      expect(await failure(connector.updateMetadata!(elsewhere, running.target(), contextOf(outbound)))).toMatchObject({
        code: 'copy_missing',
        permanent: true,
      })
    })

    test('stores the properties of a large document', async () => {
      if (!running.properties) return
      const [vendor, number] = running.properties.names
      const payload = largePayload(large.sizeBytes, { properties: { [vendor]: 'Acme', [number]: '51056001' } })
      expect(await running.properties.read(payload, await deliver(payload))).toEqual(payload.properties)
    })

    test('a repeated delivery has no second effect', async () => {
      const payload = payloadOf(randomBytes(1_000))

      const first = await deliver(payload)
      const second = await deliver(payload)

      expect(second.path).toBe(first.path)
      expect(await running.documents()).toHaveLength(1)
      expect(await running.read(payload, second)).toMatchObject({ sha256: payload.sha256 })
      expect(await running.leftovers()).toEqual([])
    })

    test.each(documents)('leaves nothing if the source fails in the middle of a %s document', async (_, { sizeBytes, breaksOffAt }) => {
      const error = await failure(deliver(failing(largePayload(sizeBytes), breaksOffAt)))

      expect(error).toMatchObject({ code: 'content_unreadable', permanent: false })
      expect(await running.documents()).toEqual([])
      await expectNothingUnfinished()
    })

    test('refuses a source that is shorter or longer than announced', async () => {
      const payload = payloadOf(randomBytes(10_000))

      for (const sizeBytes of [9_999, 10_001]) {
        const error = await failure(deliver({ ...payload, sizeBytes }))
        expect(error.code).toBe('content_unreadable')
      }

      expect(await running.documents()).toEqual([])
    })

    test.each(documents)('a cancellation in the middle of a %s document takes effect at once and leaves nothing', async (_, document) => {
      const payload = document === small ? slowly(largePayload(small.sizeBytes), 20) : largePayload(document.sizeBytes)
      const cancelled = new AbortController()
      let opened = 0
      let closed = 0
      const source: Payload = {
        ...payload,
        open: () => {
          opened += 1
          return payload.open().on('close', () => {
            closed += 1
          })
        },
      }
      const onProgress = (bytes: number) => void (bytes >= document.breaksOffAt && cancelled.abort(new Error('cancelled')))
      let cancelledAt = 0
      cancelled.signal.addEventListener('abort', () => {
        cancelledAt = Date.now()
      })

      await expect(deliver(source, { signal: cancelled.signal, onProgress })).rejects.toThrow()

      expect(cancelledAt).toBeGreaterThan(0)
      expect(Date.now() - cancelledAt).toBeLessThan(promptlyMs)
      await until('the source is closed', () => closed === opened)
      expect(await running.documents()).toEqual([])
      await expectNothingUnfinished()
    })

    test('after a worker was killed in the middle of a large document, the next run resumes and leaves one complete document', async () => {
      const whole = largePayload(fullOr(40 * MiB, 24 * MiB))
      const { kind, target, processSettings } = { ...running, kind: rig.kind, target: running.target() }
      const { saved } = await deliverUntilKilled(whole, { kind, target, processSettings })
      expect(await running.documents()).toEqual([])

      const { payload, starts } = watched(whole)
      const result = await deliver(payload, { saved })

      expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256, sizeBytes: payload.sizeBytes })
      expect(await running.documents()).toHaveLength(1)
      expect(await running.leftovers()).toEqual([])
      // Nothing is sent twice that the target has stored.
      if (saved !== undefined) expect(Math.max(...starts)).toBeGreaterThan(0)
    })

    test('the content after an append is not taken for a repetition', async () => {
      const first = payloadOf(Buffer.from('first'))
      const appended = {
        ...payloadOf(Buffer.from('first second')),
        deliveryId: first.deliveryId,
        documentId: first.documentId,
        docId: first.docId,
        path: first.path,
      }
      await deliver(first)
      const result = await deliver(appended)
      expect(await running.read(appended, result)).toMatchObject({ sha256: appended.sha256, sizeBytes: appended.sizeBytes })
      expect(await running.documents()).toHaveLength(running.connector.isMessage ? 2 : 1)
    })

    test('does nothing if it is cancelled before it starts', async () => {
      await expect(deliver(payloadOf(Buffer.from('x')), { signal: AbortSignal.abort(new Error('cancelled')) })).rejects.toThrow('cancelled')
      expect(await running.documents()).toEqual([])
    })

    test('fails permanently if the bucket, folder or recipient does not exist', async () => {
      for (const attempt of [
        () => deliver(payloadOf(Buffer.from('x')), {}, running.missingLocation.target),
        () => running.connector.probe(running.missingLocation.target, contextOf(outbound)),
      ]) {
        expect(await failure(attempt())).toMatchObject({ code: running.missingLocation.code, permanent: true })
      }
    })

    test('the probe succeeds and leaves nothing', async () => {
      await running.connector.probe(running.target(), contextOf(outbound))
      expect(await running.documents()).toEqual([])
      await expectNothingUnfinished()
    })

    test('at a target that refuses a step of a delivery, the error begins with that step, and a test of the destination fails or says that it did not try it', async () => {
      const { steps, start } = running.refusing
      for (const [step, { operation, untried }] of Object.entries(steps)) {
        const { target, stop } = await start(step)
        const errors: string[] = []
        for (const payload of [payloadOf(Buffer.from('x')), largePayload(minPartBytes + 1)]) {
          await deliver(payload, {}, target).catch((thrown: Error) => errors.push(thrown.message))
        }
        expect([step, errors]).toEqual([step, errors.map(() => expect.stringMatching(operation) as string)])
        expect([step, errors.length > 0]).toEqual([step, true])
        const probing = running.connector.probe(target, contextOf(outbound))
        if (untried) expect([step, await probing]).toEqual([step, expect.stringMatching(untried)])
        else expect([step, (await failure(probing)).message]).toEqual([step, expect.stringMatching(operation)])
        await stop()
      }
      expect(await running.documents()).not.toContainEqual(expect.stringContaining('probe'))
    })

    test('the schemas accept their own output and refuse unknown keys', () => {
      const { config, credentials } = running.target()
      expect(running.connector.config.parse(config)).toEqual(config)
      expect(running.connector.config.safeParse({ ...(config as object), unheard_of: 1 }).success).toBe(false)
      expect(running.connector.credentials.safeParse({ ...(credentials as object), unheard_of: 1 }).success).toBe(false)
    })

    if (rig.usesNetwork) describeNetwork(() => ({ running, outbound }))
    if (rig.demandsEvidence) describePages(() => ({ running, outbound }))
  })
}

/** Tests of the connection to the target. */
const describeNetwork = (get: () => { running: RunningTarget; outbound: OutboundGuard }) => {
  const deliverTo = (port: number, payload: Payload, overrides: Parameters<typeof contextOf>[1] = {}) => {
    const { running, outbound } = get()
    const connector = running.network!.connectorAt?.(port) ?? running.connector
    return connector.deliver(payload, running.target(port), contextOf(outbound, overrides))
  }

  test.each([1, 20])(
    'a connection that is cut in the middle of %i MiB leaves no document, and the next attempt cleans up',
    async (sizeMiB) => {
      const { running, outbound } = get()
      const payload = largePayload(sizeMiB * MiB)
      const proxy = await startTcpProxy(running.network!.port, { kind: 'cut', afterBytes: payload.sizeBytes / 2 })

      const error = await failure(deliverTo(proxy.port, payload))
      await proxy.stop()

      expect(error).toMatchObject({ code: 'connection_lost', permanent: false })
      expect(await running.documents()).toEqual([])

      await running.connector.deliver(payload, running.target(), contextOf(outbound))
      expect(await running.documents()).toHaveLength(1)
    },
  )

  test.each([
    ['before its first answer', 0],
    ['in the middle of the document', 1 * MiB],
  ])('times out if the target falls silent %s', async (_when, afterBytes) => {
    const { running } = get()
    const proxy = await startTcpProxy(running.network!.port, { kind: 'stall', afterBytes })
    const startedAt = Date.now()

    const error = await failure(deliverTo(proxy.port, largePayload(12 * MiB), { connectTimeoutMs: 700, idleTimeoutMs: 700 }))
    await proxy.stop()

    expect(error).toMatchObject({ code: 'timeout', permanent: false })
    expect(Date.now() - startedAt).toBeLessThan(promptlyMs)
    expect(await running.documents()).toEqual([])
  })

  test('succeeds at a target that reads and answers slowly, for longer than it may be silent', async () => {
    const { running } = get()
    const { port } = running.network!
    // The rate is per connection, so parts in parallel take together as long as the largest of them.
    const bytesPerSecond = 1.2 * MiB
    const proxy = await startTcpProxy(port, { kind: 'slow', bytesPerSecond, answerBytesPerSecond: 256 * 1024 })
    const payload = largePayload(minPartBytes + 1)
    const partMs = (minPartBytes / bytesPerSecond) * 1_000
    // Shorter than one part takes, and 1.8 times as long as the 4 MiB take that Linux may hold of a connection and the relay no longer sees: a
    // busy machine forwards more slowly.
    const idleTimeoutMs = partMs * 0.9
    const startedAt = Date.now()

    const result = await deliverTo(proxy.port, payload, { idleTimeoutMs })
    const tookMs = Date.now() - startedAt
    await proxy.stop()

    const path = result.path.replace(`:${proxy.port}/`, `:${port}/`)
    expect(await running.read(payload, { ...result, path })).toMatchObject({ sha256: payload.sha256, sizeBytes: payload.sizeBytes })
    expect(tookMs).toBeGreaterThan(idleTimeoutMs)
  })

  test.each<[Load, string, () => string]>([
    ['throttled', 'in seconds', () => '17'],
    ['throttled', 'as a date', () => new Date(Date.now() + 17_000).toUTCString()],
    ['overloaded', 'in seconds', () => '17'],
    ['overloaded', 'as a date', () => new Date(Date.now() + 17_000).toUTCString()],
  ])('is retried at a target that is %s, after the time that it asks for %s', async (load, _form, retryAfter) => {
    const { running } = get()
    const { busy: startBusy, hasNoRetryAfter } = running.network!
    const startedAt = Date.now()
    const busy = await startBusy(load, retryAfter())

    const error = await failure(deliverTo(busy.port, payloadOf(Buffer.from('x'))))
    const passedMs = Date.now() - startedAt
    await busy.stop()

    expect(error).toMatchObject({ code: busy.code, permanent: false })
    if (hasNoRetryAfter) expect(error.retryAfterMs).toBeUndefined()
    else {
      expect(error.retryAfterMs).toBeLessThanOrEqual(17_000)
      // A date has no milliseconds, and comes nearer.
      expect(error.retryAfterMs).toBeGreaterThanOrEqual(16_000 - passedMs)
    }
    expect(await running.documents()).toEqual([])
  })

  test('is retried if nothing listens at the port', async () => {
    expect(await failure(deliverTo(await findFreePort(), payloadOf(Buffer.from('x'))))).toMatchObject({
      code: 'connection_refused',
      permanent: false,
    })
  })

  test('fails permanently with wrong credentials and shows none of them', async () => {
    const { running, outbound } = get()
    const { wrongCredentials, secrets } = running.network!
    for (const attempt of [
      () => running.connector.deliver(payloadOf(Buffer.from('x')), wrongCredentials, contextOf(outbound)),
      () => running.connector.probe(wrongCredentials, contextOf(outbound)),
    ]) {
      const error = await failure(attempt())
      expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
      const text = JSON.stringify([error.message, error.answer])
      for (const secret of secrets) expect(text).not.toContain(secret)
    }
  })

  test('is delivered through the proxy of the operator', async () => {
    const { running } = get()
    const proxy = await startForwardProxy()
    const outbound = createOutboundGuard({ allowedCidrs: loopback, proxyUrl: proxy.urlWithLogin })
    const payload = largePayload(severalParts.sizeBytes)

    await running.connector.probe(running.target(), contextOf(outbound))
    await running.reset()
    const result = await running.connector.deliver(payload, running.target(), contextOf(outbound))

    expect(await running.read(payload, result)).toMatchObject({ sha256: payload.sha256, sizeBytes: payload.sizeBytes })
    expect(proxy.targets).toContain(`127.0.0.1:${running.network!.port}`)
    await outbound.close()
    await proxy.stop()
  })

  test('is retried if the proxy of the operator refuses the password, and shows none', async () => {
    const { running } = get()
    const proxy = await startForwardProxy()
    const outbound = createOutboundGuard({ allowedCidrs: loopback, proxyUrl: proxy.url.replace('//', '//relay:canary-wrong@') })
    for (const attempt of [
      () => running.connector.deliver(payloadOf(Buffer.from('x')), running.target(), contextOf(outbound)),
      () => running.connector.probe(running.target(), contextOf(outbound)),
    ]) {
      const error = await failure(attempt())
      expect(error).toMatchObject({ code: 'proxy_failed', permanent: false })
      expect(error.message).toContain('RELAY_OUTBOUND_PROXY')
      expect(JSON.stringify([error.message, error.answer])).not.toContain('canary')
    }
    await outbound.close()
    await proxy.stop()
    expect(await running.documents()).toEqual([])
  })

  test('reaches no address that is not allowed', async () => {
    const { running } = get()
    const strict = createOutboundGuard({ allowedCidrs: [] })
    for (const attempt of [
      () => running.connector.deliver(payloadOf(Buffer.from('x')), running.target(), contextOf(strict)),
      () => running.connector.probe(running.target(), contextOf(strict)),
    ]) {
      const error = await failure(attempt())
      expect(error).toMatchObject({ code: 'blocked_address', permanent: true })
      expect(error.message).toContain('RELAY_ALLOWED_PRIVATE_CIDRS')
    }
    await strict.close()
    expect(await running.documents()).toEqual([])
  })
}
