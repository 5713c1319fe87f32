import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { callTarget, type CallTargetDeps, type StoredTarget } from '../connectors/call-target.ts'
import { DeliveryError, type ByteSpan, type StoredCopy } from '../connectors/connector.ts'

/** The target says that it does not have the document. */
export class CopyMissing extends Error {
  constructor() {
    super('it is not there')
    this.name = 'CopyMissing'
  }
}

const limits = {
  // A person waits for the document, as at an upstream.
  connectTimeoutMs: 5_000,
  idleTimeoutMs: 30_000,
  /** The longest time for a read, whatever its length. */
  timeoutMs: 3_600_000,
}

export type ReadCopyDeps = CallTargetDeps & { readLimits?: Partial<typeof limits> }

/**
 * Reads bytes of a document at the destination to which it was delivered, without comparing them with anything.
 * @throws `CopyMissing`, a `DeliveryError`, or the reason of the signal
 */
export async function* readCopy(
  deps: ReadCopyDeps,
  copy: StoredTarget & StoredCopy,
  span: ByteSpan,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const { timeoutMs, ...context } = { ...limits, ...deps.readLimits }
  const left = new AbortController()
  const cancelled = AbortSignal.any([signal, left.signal])
  const bytes = new PassThrough()
  const read = async (): Promise<void> => {
    const found = await callTarget(
      deps,
      copy,
      { timeoutMs, cancelled },
      async (connector, target, attempt) => {
        if (!connector.read)
          throw new DeliveryError('config_invalid', `documents at a destination of the type ${connector.kind} cannot be read`)
        return connector.read(copy, span, target, attempt, async (pieces) => {
          for await (const piece of pieces) if (!bytes.write(piece)) await once(bytes, 'drain', { signal: attempt.signal })
        })
      },
      context,
    )
    if (found instanceof DeliveryError) throw found
    if (!found) throw new CopyMissing()
    bytes.end()
  }
  void read().catch((thrown: unknown) => bytes.destroy(thrown as Error))
  try {
    yield* bytes as AsyncIterable<Buffer>
  } finally {
    bytes.on('error', () => {}).destroy()
    left.abort(new DeliveryError('connection_lost', 'the reader has left'))
  }
}
