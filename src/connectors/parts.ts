import type { Readable } from 'node:stream'

const MiB = 1024 * 1024
/** Up to here one request is cheaper than several. */
export const partMinBytes = 8 * MiB
// beside these, one more is being gathered: three parts are in memory at any time
const partsInFlight = 2

interface Division {
  sizeBytes: number
  partBytes: number
}

/** How long parts are, for an upload that may consist of so many. */
export const partBytesOf = (sizeBytes: number, partsAtMost: number) => Math.max(partMinBytes, Math.ceil(sizeBytes / partsAtMost))

/**
 * Cuts a body into parts of one size, the last one shorter, and sends two of them at a time. When one fails no other is begun;
 * ending what is still in flight is the caller's.
 * @param send takes the part and its number, from 1 on
 */
export const sendInParts = async <Sent>(
  body: Readable,
  division: Division,
  send: (bytes: Buffer, number: number) => Promise<Sent>,
): Promise<Sent[]> => {
  const inFlight = new Set<Promise<Sent>>()
  const parts: Promise<Sent>[] = []
  for await (const bytes of partsOf(body, division)) {
    if (inFlight.size >= partsInFlight) await Promise.race(inFlight)
    const part = send(bytes, parts.length + 1)
    parts.push(part)
    // a failed one stays, for the race or the end to find
    inFlight.add(part)
    part.then(
      () => inFlight.delete(part),
      () => {},
    )
  }
  return Promise.all(parts)
}

async function* partsOf(body: Readable, { sizeBytes, partBytes }: Division): AsyncGenerator<Buffer> {
  let part = Buffer.allocUnsafe(Math.min(partBytes, sizeBytes))
  let [filled, left] = [0, sizeBytes]
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (let taken = 0; taken < chunk.length;) {
      const copied = chunk.copy(part, filled, taken)
      taken += copied
      filled += copied
      if (filled < part.length) continue
      yield part
      left -= filled
      part = Buffer.allocUnsafe(Math.min(partBytes, left))
      filled = 0
    }
  }
}
