import { posix } from 'node:path'
import type { Readable } from 'node:stream'
import ssh2, { type Stats } from 'ssh2'
import { newId } from '../ids.ts'
import { DeliveryError, type AttemptContext, type Connector, type Target } from './connector.ts'
import { metered } from './metered.ts'
import { toDeliveryError } from './network-error.ts'
import { reporting } from './reporting.ts'
import { secretsIn } from './secrets.ts'
import { openSftpSession, type SftpSession } from './sftp-session.ts'
import { sftpConfig, sftpCredentials, type SftpConfig, type SftpCredentials } from './sftp-target.ts'
import { partName, targetSegments } from './target-path.ts'

// One write at a time waits for each answer: 2 MB/s on loopback against 86 MB/s with eight. With 64, rclone's server fails.
const writesInFlight = 8
// ssh2 splits what is longer than 31,952 bytes for most servers, and sends the rest after the writes that follow it
const packetBytes = 31 * 1024
// for taking away what a failed attempt has begun
const tidyUpTimeoutMs = 1_500

/** Writes to a hidden name beside the final one and renames: at the final path lies a whole document or none. */
export const sftp: Connector<SftpConfig, SftpCredentials> = {
  kind: 'sftp',
  config: sftpConfig,
  credentials: sftpCredentials,

  deliver: async (parcel, target, context) => {
    const folders = targetSegments(parcel.path)
    const name = folders.pop() ?? ''
    const folder = posix.join(target.config.directory, ...folders)
    const path = posix.join(folder, name)
    await within(target, context, async (session) => {
      await requireFolder(session, target.config.directory, context.signal)
      await makeFolders(session, target.config.directory, folders, context.signal)
      const source = metered(parcel.open(), { sizeBytes: parcel.sizeBytes, signal: context.signal, onBytes: context.onProgress })
      const part = posix.join(folder, partName(name, parcel.deliveryId))
      try {
        await writeFile(session, part, source, context.signal)
        await moveOver(session, part, path, context.signal)
      } catch (thrown) {
        await tidyUp(session, part)
        throw thrown
      } finally {
        source.destroy()
      }
    })
    return { path: shown(target.config, path), bytesSent: parcel.sizeBytes }
  },

  probe: async (target, context) => {
    await within(target, context, async (session) => {
      await requireFolder(session, target.config.directory, context.signal)
      const part = posix.join(target.config.directory, partName('probe', newId()))
      try {
        await writeFile(session, part, [Buffer.from('.')], context.signal)
        await session.call((done) => session.sftp.unlink(part, done), context.signal)
      } catch (thrown) {
        await tidyUp(session, part)
        throw thrown
      }
    })
  },
}

/** As curl writes it: `/~/` begins where the account is put after login. */
const shown = ({ host, port }: SftpConfig, path: string) => `sftp://${host}:${port}${path.startsWith('/') ? '' : '/~/'}${path}`

const within = (target: Target<SftpConfig, SftpCredentials>, context: AttemptContext, act: (session: SftpSession) => Promise<void>) =>
  reporting(
    context,
    secretsIn(sftpCredentials, target.credentials),
    async () => {
      const session = await openSftpSession(target, context)
      try {
        await act(session)
      } finally {
        session.end()
      }
    },
    sftpError,
  )

const writeFile = async (session: SftpSession, path: string, source: Readable | Buffer[], signal: AbortSignal) => {
  const { sftp: channel, call } = session
  const handle = await call<Buffer>((done) => channel.open(path, 'w', done), signal)
  try {
    const writes = new Set<Promise<void>>()
    let position = 0
    for await (const chunk of source as AsyncIterable<Buffer>) {
      for (let offset = 0; offset < chunk.length; offset += packetBytes) {
        if (writes.size >= writesInFlight) await Promise.race(writes)
        const at = position
        const length = Math.min(packetBytes, chunk.length - offset)
        const write = call((done) => channel.write(handle, chunk, offset, length, at, done), signal)
        // a failed one stays, for the race or the end to find
        writes.add(write)
        write.then(
          () => writes.delete(write),
          () => {},
        )
        position += length
      }
    }
    await Promise.all(writes)
    await flush(session, handle, signal)
  } catch (thrown) {
    channel.close(handle, () => {})
    throw thrown
  }
  await call((done) => channel.close(handle, done), signal)
}

/** An extension of OpenSSH; where it is missing, the server's word at closing has to do. */
const flush = async ({ sftp: channel, call }: SftpSession, handle: Buffer, signal: AbortSignal) => {
  await call((done) => channel.ext_openssh_fsync(handle, done), signal).catch((error: unknown) => {
    if (!isMissingExtension(error)) throw error
  })
}

/** Onto a name that may be taken, by an earlier run of this delivery for one. */
const moveOver = async ({ sftp: channel, call }: SftpSession, from: string, to: string, signal: AbortSignal) => {
  try {
    return await call((done) => channel.ext_openssh_rename(from, to, done), signal)
  } catch (thrown) {
    if (!isMissingExtension(thrown)) throw thrown
  }
  // the rename of the protocol itself refuses a name that is taken
  const taken = await call<Stats>((done) => channel.stat(to, done), signal).then(
    () => true,
    () => false,
  )
  if (taken) await call((done) => channel.unlink(to, done), signal)
  await call((done) => channel.rename(from, to, done), signal)
}

const requireFolder = async (session: SftpSession, folder: string, signal: AbortSignal) => {
  const state = await folderState(session, folder, signal)
  if (state !== 'folder') {
    throw new DeliveryError(
      'directory_missing',
      `the folder ${folder} is ${state === 'absent' ? 'not there' : 'no folder'}: create it, or change directory`,
      {
        permanent: true,
      },
    )
  }
}

const folderState = async ({ sftp: channel, call }: SftpSession, path: string, signal: AbortSignal) => {
  try {
    const stats = await call<Stats>((done) => channel.stat(path, done), signal)
    return stats.isDirectory() ? 'folder' : 'other'
  } catch (thrown) {
    if (codeOf(thrown) === ssh2.utils.sftp.STATUS_CODE.NO_SUCH_FILE) return 'absent'
    throw thrown
  }
}

const makeFolders = async (session: SftpSession, base: string, folders: string[], signal: AbortSignal) => {
  if (folders.length === 0 || (await folderState(session, posix.join(base, ...folders), signal)) === 'folder') return
  let folder = base
  for (const segment of folders) {
    folder = posix.join(folder, segment)
    const made = folder
    await session
      .call((done) => session.sftp.mkdir(made, done), signal)
      .catch(async (error: unknown) => {
        // another delivery may have made it in this moment; servers have no code of their own for that
        if ((await folderState(session, made, signal)) !== 'folder') throw error
      })
  }
}

/** Never throws: on a connection that is gone, the next attempt writes over what was left. */
const tidyUp = async ({ sftp: channel, call }: SftpSession, path: string) => {
  await call((done) => channel.unlink(path, done), AbortSignal.timeout(tidyUpTimeoutMs)).catch(() => {})
}

const codeOf = (thrown: unknown) => (thrown as { code?: unknown }).code

// ssh2 throws by itself where the server did not announce the extension
const isMissingExtension = (thrown: unknown) =>
  codeOf(thrown) === ssh2.utils.sftp.STATUS_CODE.OP_UNSUPPORTED ||
  (thrown instanceof Error && thrown.message.startsWith('Server does not support'))

const sftpError = (thrown: unknown): DeliveryError => {
  if (codeOf(thrown) === ssh2.utils.sftp.STATUS_CODE.PERMISSION_DENIED) {
    return new DeliveryError('permission_denied', 'the account may not write there: give it the right to create, rename and delete files', {
      permanent: true,
      cause: thrown,
    })
  }
  return toDeliveryError(thrown, 'sftp_failure')
}
