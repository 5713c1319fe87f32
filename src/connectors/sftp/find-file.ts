import { createHash } from 'node:crypto'
import ssh2, { type Stats } from 'ssh2'
import type { Found, Refusal } from '../shared/earlier-copy.ts'
import { isAbsent, sftpStatusOf } from './errors.ts'
import type { SftpSession } from './session.ts'

const { STATUS_CODE } = ssh2.utils.sftp
// Most servers have drafts with a few codes only, so that FAILURE means anything. The others are file exists, write protected, locked and
// cannot be deleted, of later drafts.
const refusalCodes = new Set<unknown>([STATUS_CODE.FAILURE, STATUS_CODE.PERMISSION_DENIED, STATUS_CODE.OP_UNSUPPORTED, 11, 12, 17, 21])
const readBytes = 32 * 1024

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
const digestOf = async ({ sftp: channel, call }: SftpSession, path: string, signal: AbortSignal): Promise<string> => {
  const handle = await call<Buffer>(`open of ${path} to read it`, (done) => channel.open(path, 'r', done), signal)
  try {
    const hash = createHash('sha256')
    const buffer = Buffer.alloc(readBytes)
    for (let at = 0; ;) {
      const read = await call<number>(`read of ${path}`, (done) => channel.read(handle, buffer, 0, readBytes, at, done), signal).catch(
        (thrown: unknown) => {
          if (sftpStatusOf(thrown) === STATUS_CODE.EOF) return 0
          throw thrown
        },
      )
      if (read === 0) return hash.digest('hex')
      hash.update(buffer.subarray(0, read))
      at += read
    }
  } finally {
    channel.close(handle, () => {})
  }
}
