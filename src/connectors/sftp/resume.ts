import ssh2, { type Stats } from 'ssh2'
import { DeliveryError, type AttemptContext, type Payload } from '../connector.ts'
import { canGoOn } from '../shared/upload-parts.ts'
import { sftpError, sftpStatusOf } from './errors.ts'
import type { SftpSession } from './session.ts'

const MiB = 1024 * 1024
/** A shorter document is sent again. */
const minBytes = 8 * MiB
// Between two saves, for a worker that is lost.
const saveEveryBytes = 16 * MiB
// Bytes before the position that are compared: a server that was restarted may have lost what it had confirmed.
const comparedBytes = 256 * 1024

/** What an attempt saves for the next one. */
interface SavedUpload {
  /** The address of the hidden file. */
  part: string
  /** The server has confirmed all bytes before it. */
  confirmed: number
}

/** A hidden file that an earlier attempt has begun, open for writing. */
export interface Begun {
  handle: Buffer
  startByte: number
}

/**
 * Opens the hidden file of an earlier attempt, if the server has confirmed a part of the document and still has it.
 * @param address names the file and its server
 */
export const openBegun = async (
  session: SftpSession,
  path: string,
  address: string,
  payload: Payload,
  { saved, signal }: AttemptContext,
): Promise<Begun | undefined> => {
  const { part, confirmed = 0 } = (saved ?? {}) as Partial<SavedUpload>
  if (part !== address || confirmed < minBytes || confirmed > payload.sizeBytes) return undefined
  const { sftp: channel, call } = session
  try {
    const handle = await call<Buffer>(`open of ${path} to continue it`, (done) => channel.open(path, 'r+', done), signal)
    const { size } = await call<Stats>(`stat of ${path}`, (done) => channel.fstat(handle, done), signal)
    const from = Math.max(0, confirmed - comparedBytes)
    if (size >= confirmed && (await isSame(session, handle, path, payload, from, confirmed, signal)))
      return { handle, startByte: confirmed }
    await call(`close of ${path}`, (done) => channel.close(handle, done), signal)
    return undefined
  } catch (thrown) {
    // The file is gone, or may not be read.
    if (typeof sftpStatusOf(thrown) === 'number') return undefined
    throw thrown
  }
}

const readBytes = 32 * 1024

/** Compares a part of the file with the document. */
const isSame = async (
  { sftp: channel, call }: SftpSession,
  handle: Buffer,
  path: string,
  payload: Payload,
  from: number,
  to: number,
  signal: AbortSignal,
): Promise<boolean> => {
  const buffer = Buffer.alloc(readBytes)
  let at = from
  const source = payload.open(from)
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      for (let rest = chunk.subarray(0, to - at); rest.length > 0;) {
        const wanted = Math.min(readBytes, rest.length)
        const position = at
        const read = await call<number>(`read of ${path}`, (done) => channel.read(handle, buffer, 0, wanted, position, done), signal)
        if (read === 0 || !buffer.subarray(0, read).equals(rest.subarray(0, read))) return false
        rest = rest.subarray(read)
        at += read
      }
      if (at >= to) return true
    }
    return false
  } finally {
    source.destroy()
  }
}

/** Follows an upload whose writes are confirmed in any order, and saves how far it has come without a gap. */
export const followUpload = (address: string, startByte: number, partBytes: number, sizeBytes: number, context: AttemptContext) => {
  const ahead = new Set<number>()
  let written = 0
  let savedBytes = startByte
  const confirmed = () => Math.min(startByte + written * partBytes, sizeBytes)
  const save = () => {
    savedBytes = confirmed()
    context.save({ part: address, confirmed: savedBytes } satisfies SavedUpload)
  }
  return {
    /** @param number of the write, counted from 1 */
    onWritten: (number: number) => {
      ahead.add(number)
      while (ahead.delete(written + 1)) written += 1
      if (confirmed() >= minBytes && confirmed() - savedBytes >= saveEveryBytes) save()
    },
    /** Saves the position after a failure that passes. @returns true if the file must stay for the next attempt */
    keepsAfter: (thrown: unknown): boolean => {
      const goesOn = canGoOn(context, passes)(thrown, context.signal)
      if (!goesOn || confirmed() < minBytes) return false
      if (confirmed() > savedBytes) save()
      return true
    },
  }
}

// A full disk needs the space.
const passes = (thrown: unknown): boolean => {
  if (thrown instanceof DeliveryError && thrown.code === 'content_unreadable') return false
  const { permanent, code } = sftpError(thrown)
  return !permanent && code !== 'storage_full' && sftpStatusOf(thrown) !== ssh2.utils.sftp.STATUS_CODE.PERMISSION_DENIED
}
