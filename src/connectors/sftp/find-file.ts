import { createHash } from 'node:crypto'
import ssh2, { type Stats } from 'ssh2'
import type { ByteSpan } from '../connector.ts'
import type { Found, Refusal } from '../shared/earlier-copy.ts'
import { isAbsent, sftpStatusOf } from './errors.ts'
import type { SftpSession } from './session.ts'

const { STATUS_CODE } = ssh2.utils.sftp
// Most servers have drafts with a few codes only, so that FAILURE means anything. The others are file exists, write protected, locked and
// cannot be deleted, of later drafts.
const refusalCodes = new Set<unknown>([STATUS_CODE.FAILURE, STATUS_CODE.PERMISSION_DENIED, STATUS_CODE.OP_UNSUPPORTED, 11, 12, 17, 21])
const readBytes = 31 * 1024
// As for writes, see deliver.ts.
const maxReadsInFlight = 16

/**
 * Returns whether an error of a rename, or of opening a file to write it, can mean that the file exists and may not be replaced. A server that
 * has renamed a file and been asked again does not find it.
 */
export const refusalOf = (thrown: unknown): Refusal => {
  return isAbsent(thrown) || refusalCodes.has(sftpStatusOf(thrown)) ? 'perhaps' : undefined
}

/** Looks at the file under the name of a document. A server keeps nothing of the relay with it, so the content decides. */
export const findFile = async (
  session: SftpSession,
  path: string,
  wanted: { sizeBytes: number; sha256: string },
  signal: AbortSignal,
): Promise<Found<'found'>> => {
  try {
    const { size } = await session.call<Stats>(`stat of ${path}`, (done) => session.sftp.stat(path, done), signal)
    if (size !== wanted.sizeBytes) return { state: 'other' }
    return (await digestOf(session, path, signal)) === wanted.sha256 ? { state: 'ours', stored: 'found' } : { state: 'other' }
  } catch (thrown) {
    if (isAbsent(thrown)) return { state: 'absent' }
    if (refusalCodes.has(sftpStatusOf(thrown))) return { state: 'unknown', needs: 'the account may not read the file' }
    throw thrown
  }
}

/** Returns the SHA-256 of a file in lower-case hex. */
const digestOf = async (session: SftpSession, path: string, signal: AbortSignal): Promise<string> => {
  const hash = createHash('sha256')
  for await (const bytes of readFile(session, path, { start: 0, end: Infinity }, signal)) hash.update(bytes)
  return hash.digest('hex')
}

/** Reads bytes of a file, fewer if it has fewer. */
export async function* readFile(
  { sftp: channel, call }: SftpSession,
  path: string,
  { start, end }: ByteSpan,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const handle = await call<Buffer>(`open of ${path} to read it`, (done) => channel.open(path, 'r', done), signal)
  const readAt = async (at: number): Promise<Buffer> => {
    const buffer = Buffer.allocUnsafe(Math.min(readBytes, end + 1 - at))
    const read = (done: (error?: Error | null, bytes?: number) => void) => channel.read(handle, buffer, 0, buffer.length, at, done)
    const bytes = await call<number>(`read of ${path}`, read, signal).catch((thrown: unknown) => {
      if (sftpStatusOf(thrown) === STATUS_CODE.EOF) return 0
      throw thrown
    })
    return buffer.subarray(0, bytes)
  }
  try {
    for (let at = start; at <= end;) {
      const count = Math.min(maxReadsInFlight, Math.ceil((end + 1 - at) / readBytes))
      const pieces = await Promise.all(Array.from({ length: count }, (_, index) => readAt(at + index * readBytes)))
      for (const [index, piece] of pieces.entries()) {
        if (piece.length === 0) return
        yield piece
        at += piece.length
        // A server may send less than was asked for.
        if (piece.length < readBytes && index < count - 1) break
      }
    }
  } finally {
    channel.close(handle, () => {})
  }
}
