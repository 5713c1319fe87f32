import { createBlob } from '../../src/connectors/blob.ts'
import { Interruption, type Connector, type Parcel, type Receipt, type Target } from '../../src/connectors/connector.ts'
import { createEntraTokens } from '../../src/connectors/entra-token.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { startAzurite } from '../support/azurite.ts'
import { startDriveRig } from './drive-rig.ts'
import { contextOf, largeParcel, MiB, slowly } from './parcels.ts'
import { startTeamsiteRig } from './teamsite-rig.ts'

/** Where uploads are gone on with by what the run before has saved. Of objstore, objstore-resume.test.ts tells. */
interface Place {
  connector: Connector
  target: Target<unknown, unknown>
  /** Digest or size of the one document there. */
  stored(receipt: Receipt): Promise<unknown>
  expected(parcel: Parcel): unknown
  documents(): Promise<number>
  /** Uploads that are begun; undefined where they cannot be given up. */
  begun(): number | undefined
  /** The target forgets what was begun. */
  forget(): Promise<void>
  stop(): Promise<void>
}

const places: Record<string, () => Promise<Place>> = {
  teamsite: async () => {
    const { double, connector, target, stop } = await startTeamsiteRig()
    return {
      connector,
      target: target(),
      stored: async () => [...double.items.values()].at(-1)?.sha256,
      expected: ({ sha256 }) => sha256,
      documents: async () => double.items.size,
      begun: () => double.sessions.size,
      forget: async () => double.sessions.clear(),
      stop,
    }
  },
  drive: async () => {
    const { double, connector, target, stop } = await startDriveRig()
    return {
      connector,
      target: target(),
      stored: async () => [...double.files.values()].at(-1)?.sha256,
      expected: ({ sha256 }) => sha256,
      documents: async () => double.files.size,
      begun: () => [...double.sessions.values()].filter(({ done }) => !done).length,
      forget: async () => double.sessions.clear(),
      stop,
    }
  },
  blob: async () => {
    const { accountUrl: account_url, accountKey: account_key, container, client, stop } = await startAzurite()
    const connector = createBlob(createEntraTokens())
    return {
      connector,
      target: { config: connector.config.parse({ account_url, container }), credentials: { account_key } },
      stored: async ({ path }) => {
        const { metadata = {}, contentLength } = await client.getBlobClient(path.split(`/${container}/`)[1]!).getProperties()
        return [metadata.sha256, contentLength]
      },
      expected: ({ sha256, sizeBytes }) => [sha256, sizeBytes],
      documents: async () => {
        let count = 0
        for await (const _ of client.listBlobsFlat()) count += 1
        return count
      },
      begun: () => undefined,
      forget: async () => {
        await client.delete()
        await client.create()
      },
      stop,
    }
  },
}

describe.each(Object.entries(places))('an upload to %s', (_kind, start) => {
  let place: Place
  let outbound: OutboundGuard
  beforeAll(async () => {
    place = await start()
    outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
  })
  afterAll(async () => {
    await outbound.close()
    await place.stop()
  })

  const interrupted = async (parcel: Parcel, reason: Error = new Interruption()): Promise<unknown> => {
    const stop = new AbortController()
    let saved: unknown
    const context = contextOf(outbound, {
      signal: stop.signal,
      onProgress: (bytes) => void (bytes > parcel.sizeBytes * 0.6 && stop.abort(reason)),
      save: (state) => {
        saved = JSON.parse(JSON.stringify(state))
      },
    })
    await expect(place.connector.deliver(slowly(parcel, 2), place.target, context)).rejects.toThrow(reason.message)
    return saved
  }
  const goOn = async (parcel: Parcel, saved: unknown) => {
    const starts: number[] = []
    const watched: Parcel = {
      ...parcel,
      open: (from = 0) => {
        starts.push(from)
        return parcel.open(from)
      },
    }
    const receipt = await place.connector.deliver(watched, place.target, contextOf(outbound, { saved }))
    expect(await place.stored(receipt)).toEqual(place.expected(parcel))
    expect(receipt.bytesSent).toBe(parcel.sizeBytes - starts.at(-1)!)
    return starts
  }

  test('stays there where the worker stops, and goes on from what the target has', async () => {
    const parcel = largeParcel(40 * MiB)
    const before = await place.documents()

    const starts = await goOn(parcel, await interrupted(parcel))

    expect(Math.min(...starts)).toBeGreaterThan(0)
    expect((await place.documents()) - before).toBe(1)
    expect(place.begun() ?? 0).toBe(0)
  })

  test('is given up where the delivery was cancelled', async () => {
    await interrupted(largeParcel(40 * MiB), new Error('cancelled'))
    expect(place.begun() ?? 0).toBe(0)
  })

  test('begins anew where the document has been appended to since', async () => {
    const parcel = largeParcel(40 * MiB)
    const saved = await interrupted(parcel)

    const { sizeBytes, sha256, open } = largeParcel(41 * MiB)
    expect(await goOn({ ...parcel, sizeBytes, sha256, open }, saved)).toEqual([0])
    expect(place.begun() ?? 0).toBe(0)
  })

  test('begins anew where the target has forgotten it', async () => {
    const parcel = largeParcel(40 * MiB)
    const saved = await interrupted(parcel)
    await place.forget()

    expect((await goOn(parcel, saved)).at(-1)).toBe(0)
  })

  test('begins anew where nothing of what was saved is to be understood', async () => {
    expect(await goOn(largeParcel(9 * MiB), { uploadUrl: 7 })).toEqual([0])
  })
})

test('a file of drive that was made in the last moment of a lost worker is found by the id it had saved, before a search finds it', async () => {
  const { double, connector, connectorAt, target, stop } = await startDriveRig()
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
  const parcel = largeParcel(9 * MiB)
  let saved: unknown
  const save = (state: unknown) => {
    saved = state
  }
  await connector.deliver(parcel, target(), contextOf(outbound, { save }))
  for (const id of double.files.keys()) double.unsearchable.add(id)

  // another worker, which remembers nothing
  const { bytesSent } = await connectorAt().deliver(parcel, target(), contextOf(outbound, { saved }))

  expect([bytesSent, double.files.size]).toEqual([0, 1])
  await outbound.close()
  await stop()
})
