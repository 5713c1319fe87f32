import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Connector, Parcel, Receipt, Target } from '../../src/connectors/connector.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import type { Busy, Load } from '../support/busy-server.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import type { Job, News } from './deliver-until-killed.ts'
import { contextOf, dying, largeParcel, MiB, parcelOf, slowly, failure } from './parcels.ts'

interface Stored {
  sha256: string
  sizeBytes: number
  /** Where the target keeps one. */
  contentType?: string | undefined
}

/** A real server of one kind, and what the suite must know to look into it. */
export interface Rig {
  connector: Connector
  /** Where the product itself names the hosts of a kind, and not the target: the connector as it would be made for another port. */
  connectorAt?(port: number): Connector
  /** And where those hosts are in a process of its own. */
  double?: Job['double']
  port: number
  /** A target that works, reached by another port where something stands in between. */
  target(port?: number): Target<unknown, unknown>
  wrongCredentials: Target<unknown, unknown>
  /** A target that is too busy now, and says until when where its protocol has words for it. */
  busy(load: Load, retryAfter: string): Promise<Busy>
  /** Its protocol has no words for it: the relay's own backoff decides. */
  neverSaysUntilWhen?: boolean
  /** Where the folder, bucket or path is not there. */
  missingPlace: { target: Target<unknown, unknown>; code: string }
  /** What must be found in no message. */
  secrets: string[]
  keepsContentType: boolean
  /** No client can take back what was sent of an unfinished upload: the target drops it after a time. */
  partsExpire?: boolean
  read(parcel: Parcel, receipt: Receipt): Promise<Stored | undefined>
  /** Names of whole documents at the target. */
  documents(): Promise<string[]>
  /** Anything else: parts, temporary files, uploads that were begun. */
  leftovers(): Promise<string[]>
  reset(): Promise<void>
  stop(): Promise<void>
}

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

const killedChild = fileURLToPath(new URL('deliver-until-killed.ts', import.meta.url))

/** Delivers in a process that is killed past the middle. @returns what it had saved by then */
const killedAfter = async (parcel: Parcel, job: Omit<Job, 'parcel'>): Promise<{ saved: unknown }> => {
  const child = fork(killedChild, { execArgv: ['--disable-warning=ExperimentalWarning'] })
  const exited = once(child, 'exit')
  const { open: _, receivedAt: __, ...plain } = parcel
  child.send({ ...job, parcel: plain } satisfies Job)
  let saved: unknown
  await new Promise<void>((resolve, reject) => {
    child.on('exit', () => reject(new Error('the process ended by itself')))
    child.on('message', (news: News) => {
      if ('failed' in news) reject(new Error(news.failed))
      else if ('saved' in news) saved = news.saved
      else if (news.bytesSent > parcel.sizeBytes * 0.6) resolve()
    })
  })
  child.kill('SIGKILL')
  await exited
  return { saved }
}

const loopback = ['127.0.0.0/8', '::1/128']
const promptlyMs = 2_000
// the parts an upload holds at a time, and what the garbage collector has not come to yet; a document kept whole would take 256 MiB
const growthMaxBytes = 160 * MiB

/** What every connector does in the same way, tried against a real server. */
export const describeConnector = (kind: string, start: () => Promise<Rig>) => {
  describe(`the ${kind} connector`, () => {
    let rig: Rig
    let outbound: OutboundGuard

    beforeAll(async () => {
      rig = await start()
      outbound = createOutboundGuard({ allowedCidrs: loopback })
    })
    beforeEach(() => rig.reset())
    afterAll(async () => {
      await outbound.close()
      await rig.stop()
    })

    const expectNothingUnfinished = async () => {
      if (!rig.partsExpire) expect(await rig.leftovers()).toEqual([])
    }
    const deliver = (parcel: Parcel, overrides: Parameters<typeof contextOf>[1] = {}, target = rig.target()) =>
      rig.connector.deliver(parcel, target, contextOf(outbound, overrides))

    const deliverBy = (port: number, parcel: Parcel, overrides: Parameters<typeof contextOf>[1] = {}) =>
      (rig.connectorAt?.(port) ?? rig.connector).deliver(parcel, rig.target(port), contextOf(outbound, overrides))

    test.each([0, 1, 32 * 1024, 100_003])('delivers a document of %i bytes', async (sizeBytes) => {
      const parcel = parcelOf(randomBytes(sizeBytes))

      const receipt = await deliver(parcel)

      expect(receipt.bytesSent).toBe(sizeBytes)
      expect(await rig.read(parcel, receipt)).toMatchObject({ sha256: parcel.sha256, sizeBytes })
      expect(await rig.leftovers()).toEqual([])
    })

    test('delivers 256 MiB in bounded memory and tells how far it is', async () => {
      const parcel = largeParcel(256 * MiB)
      const progress: number[] = []
      const before = process.memoryUsage().rss
      let peak = before

      const receipt = await deliver(parcel, {
        onProgress: (bytes) => {
          progress.push(bytes)
          peak = Math.max(peak, process.memoryUsage.rss())
        },
      })

      expect(await rig.read(parcel, receipt)).toMatchObject({ sha256: parcel.sha256, sizeBytes: 256 * MiB })
      expect(peak - before).toBeLessThan(growthMaxBytes)
      expect(progress.length).toBeGreaterThan(10)
      expect(progress.at(-1)).toBe(256 * MiB)
    }, 180_000)

    test('keeps documents with awkward names apart, and their bytes right', async () => {
      const parcels = awkwardNames.map((name) => parcelOf(Buffer.from(`content of ${name}`), { path: `R 1/ä+%/${name}`, docId: name }))

      for (const parcel of parcels) {
        const receipt = await deliver(parcel)
        expect(await rig.read(parcel, receipt)).toMatchObject({ sha256: parcel.sha256 })
      }

      expect(await rig.documents()).toHaveLength(awkwardNames.length)
    })

    test('keeps the content type where the target has a place for it', async () => {
      const parcel = parcelOf(Buffer.from('x'), { contentType: 'text/plain; charset=utf-8' })
      const stored = await rig.read(parcel, await deliver(parcel))
      expect(stored?.contentType).toBe(rig.keepsContentType ? 'text/plain; charset=utf-8' : undefined)
    })

    test('has no second effect when a delivery is repeated', async () => {
      const parcel = parcelOf(randomBytes(1_000))

      const first = await deliver(parcel)
      const second = await deliver(parcel)

      expect(second.path).toBe(first.path)
      expect(await rig.documents()).toHaveLength(1)
      expect(await rig.read(parcel, second)).toMatchObject({ sha256: parcel.sha256 })
      expect(await rig.leftovers()).toEqual([])
    })

    test.each([1, 20])('leaves nothing where the source dies in the midst of %i MiB', async (sizeMiB) => {
      const parcel = largeParcel(sizeMiB * MiB)

      const error = await failure(deliver(dying(parcel, parcel.sizeBytes / 2)))

      expect(error).toMatchObject({ code: 'content_unreadable', permanent: false })
      expect(await rig.documents()).toEqual([])
      await expectNothingUnfinished()
    })

    test('refuses a source that ends before its time, and one that does not end', async () => {
      const parcel = parcelOf(randomBytes(10_000))

      for (const sizeBytes of [9_999, 10_001]) {
        const error = await failure(deliver({ ...parcel, sizeBytes }))
        expect(error.code).toBe('content_unreadable')
      }

      expect(await rig.documents()).toEqual([])
    })

    test.each([1, 20])('a connection cut in the midst of %i MiB leaves no document, and the next attempt cleans up', async (sizeMiB) => {
      const parcel = largeParcel(sizeMiB * MiB)
      const proxy = await startTcpProxy(rig.port, { kind: 'cut', afterBytes: parcel.sizeBytes / 2 })

      const error = await failure(deliverBy(proxy.port, parcel))
      await proxy.stop()

      expect(error).toMatchObject({ code: 'connection_lost', permanent: false })
      expect(await rig.documents()).toEqual([])

      await deliver(parcel)
      expect(await rig.documents()).toHaveLength(1)
    })

    test.each([1, 20])('ends at once when it is cancelled in the midst of %i MiB, and leaves nothing', async (sizeMiB) => {
      const parcel = slowly(largeParcel(sizeMiB * MiB), sizeMiB === 1 ? 20 : 5)
      const cancelled = new AbortController()
      let sources = 0
      let closed = 0
      const watched: Parcel = {
        ...parcel,
        open: () => {
          sources += 1
          return parcel.open().on('close', () => {
            closed += 1
          })
        },
      }
      // past the first eight MiB of a large one, so that an upload in parts is on its way
      const onProgress = (bytes: number) => void (bytes > (sizeMiB * MiB) / 2 && cancelled.abort(new Error('cancelled')))
      let cancelledAt = 0
      cancelled.signal.addEventListener('abort', () => {
        cancelledAt = Date.now()
      })

      await expect(deliver(watched, { signal: cancelled.signal, onProgress })).rejects.toThrow()

      expect(cancelledAt).toBeGreaterThan(0)
      expect(Date.now() - cancelledAt).toBeLessThan(promptlyMs)
      await pause(100)
      expect(closed).toBe(sources)
      expect(await rig.documents()).toEqual([])
      await expectNothingUnfinished()
    })

    test('killed in the midst of 40 MiB: the next run goes on with what was saved, and leaves exactly one whole document', async () => {
      const parcel = largeParcel(40 * MiB)
      const { saved } = await killedAfter(parcel, {
        kind: rig.connector.kind,
        target: rig.target(),
        double: rig.double,
      })
      expect(await rig.documents()).toEqual([])

      const starts: number[] = []
      const watched: Parcel = {
        ...parcel,
        open: (from = 0) => {
          starts.push(from)
          return parcel.open(from)
        },
      }
      const receipt = await deliver(watched, { saved })

      expect(await rig.read(parcel, receipt)).toMatchObject({ sha256: parcel.sha256, sizeBytes: parcel.sizeBytes })
      expect(await rig.documents()).toHaveLength(1)
      expect(await rig.leftovers()).toEqual([])
      // nothing is sent twice that the target has kept
      if (saved !== undefined) expect(Math.max(...starts)).toBeGreaterThan(0)
    })

    test('does nothing when it is cancelled before it begins', async () => {
      await expect(deliver(parcelOf(Buffer.from('x')), { signal: AbortSignal.abort(new Error('cancelled')) })).rejects.toThrow('cancelled')
      expect(await rig.documents()).toEqual([])
    })

    test.each([
      ['before it says anything', 0],
      ['in the midst of the document', 1 * MiB],
    ])('gives up on a target that falls silent %s', async (_when, afterBytes) => {
      const proxy = await startTcpProxy(rig.port, { kind: 'stall', afterBytes })
      const begun = Date.now()

      const error = await failure(deliverBy(proxy.port, largeParcel(12 * MiB), { connectTimeoutMs: 700, idleTimeoutMs: 700 }))
      await proxy.stop()

      expect(error).toMatchObject({ code: 'timeout', permanent: false })
      expect(Date.now() - begun).toBeLessThan(8_000)
      expect(await rig.documents()).toEqual([])
    })

    test('succeeds at a target that takes the document slowly, and answers in drips, for longer than it may be silent', async () => {
      const parcel = largeParcel(24 * MiB)
      const proxy = await startTcpProxy(rig.port, { kind: 'slow', bytesPerSecond: 8 * MiB, answerBytesPerSecond: 256 * 1024 })
      const idleTimeoutMs = 2_000
      const begun = Date.now()

      const receipt = await deliverBy(proxy.port, parcel, { idleTimeoutMs })
      const tookMs = Date.now() - begun
      await proxy.stop()

      const path = receipt.path.replace(`:${proxy.port}/`, `:${rig.port}/`)
      expect(await rig.read(parcel, { ...receipt, path })).toMatchObject({ sha256: parcel.sha256, sizeBytes: parcel.sizeBytes })
      expect(tookMs).toBeGreaterThan(idleTimeoutMs)
    })

    test.each<[Load, string, () => string]>([
      ['throttled', 'in seconds', () => '17'],
      ['throttled', 'by a date', () => new Date(Date.now() + 17_000).toUTCString()],
      ['overloaded', 'in seconds', () => '17'],
      ['overloaded', 'by a date', () => new Date(Date.now() + 17_000).toUTCString()],
    ])('tries again where we are %s, after the time the target asks for %s', async (load, _form, retryAfter) => {
      const busy = await rig.busy(load, retryAfter())

      const error = await failure(deliverBy(busy.port, parcelOf(Buffer.from('x'))))
      await busy.stop()

      expect(error).toMatchObject({ code: busy.code, permanent: false })
      if (rig.neverSaysUntilWhen) expect(error.retryAfterMs).toBeUndefined()
      else expect(Math.abs(error.retryAfterMs! - 16_000)).toBeLessThanOrEqual(1_500)
      expect(await rig.documents()).toEqual([])
    })

    test('tries again where nothing listens', async () => {
      const proxy = await startTcpProxy(rig.port, { kind: 'cut', afterBytes: 0 })
      await proxy.stop()
      expect(await failure(deliverBy(proxy.port, parcelOf(Buffer.from('x'))))).toMatchObject({
        code: 'connection_refused',
        permanent: false,
      })
    })

    test('gives up for good on wrong credentials, and shows none of them', async () => {
      for (const attempt of [
        () => deliver(parcelOf(Buffer.from('x')), {}, rig.wrongCredentials),
        () => rig.connector.probe(rig.wrongCredentials, contextOf(outbound)),
      ]) {
        const error = await failure(attempt())
        expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
        const said = JSON.stringify([error.message, error.answer])
        for (const secret of rig.secrets) expect(said).not.toContain(secret)
      }
    })

    test('gives up for good on a place that is not there', async () => {
      for (const attempt of [
        () => deliver(parcelOf(Buffer.from('x')), {}, rig.missingPlace.target),
        () => rig.connector.probe(rig.missingPlace.target, contextOf(outbound)),
      ]) {
        expect(await failure(attempt())).toMatchObject({ code: rig.missingPlace.code, permanent: true })
      }
    })

    test('reaches no address that was not allowed', async () => {
      const strict = createOutboundGuard({ allowedCidrs: [] })
      for (const attempt of [
        () => rig.connector.deliver(parcelOf(Buffer.from('x')), rig.target(), contextOf(strict)),
        () => rig.connector.probe(rig.target(), contextOf(strict)),
      ]) {
        const error = await failure(attempt())
        expect(error).toMatchObject({ code: 'blocked_address', permanent: true })
        expect(error.message).toContain('RELAY_ALLOWED_PRIVATE_CIDRS')
      }
      await strict.close()
      expect(await rig.documents()).toEqual([])
    })

    test('the probe finds nothing wrong, and leaves nothing', async () => {
      await rig.connector.probe(rig.target(), contextOf(outbound))
      expect(await rig.documents()).toEqual([])
      await expectNothingUnfinished()
    })

    test('its schemas take back what they gave out', () => {
      const { config, credentials } = rig.target()
      expect(rig.connector.config.parse(config)).toEqual(config)
      expect(rig.connector.config.safeParse({ ...(config as object), unheard_of: 1 }).success).toBe(false)
      expect(rig.connector.credentials.safeParse({ ...(credentials as object), unheard_of: 1 }).success).toBe(false)
    })
  })
}
