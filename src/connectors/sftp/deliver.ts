import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { Readable } from 'node:stream'
import ssh2, { type Stats } from 'ssh2'
import { messageOf } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { DeliveryError, type AttemptContext, type Connector, type Payload, type Target } from '../connector.ts'
import { storeOrFind, type Found } from '../shared/earlier-copy.ts'
import { secretsIn, withDeliveryErrors } from '../shared/errors.ts'
import { operationOf } from '../shared/operation.ts'
import { openPayload } from '../shared/payload-stream.ts'
import { documentFile, requireSameLocation, sidecarFiles } from '../shared/properties.ts'
import { partFileName, partFolders, targetSegments } from '../shared/target-path.ts'
import { sendPartsInParallel } from '../shared/upload-parts.ts'
import { isAbsent, sftpError, sftpStatusOf } from './errors.ts'
import { findFile, readFile, refusalOf } from './find-file.ts'
import { followUpload, openBegun, type Begun } from './resume.ts'
import { sftpCredentials, type SftpConfig, type SftpCredentials } from './schema.ts'
import { openSftpSession, type SftpSession } from './session.ts'

// Measured on loopback, beside fastPut of ssh2: 2 % of its speed with one write at a time, 80 % with 8, 95 % with 16. The server of rclone
// has failed with 64.
const maxWritesInFlight = 16
// ssh2 splits writes of more than 31,952 bytes for most servers, and sends the remainder after the writes that follow.
const packetBytes = 31 * 1024
// The time for removing the temporary file of a failed attempt, in milliseconds.
const cleanUpTimeoutMs = 1_500

type SftpConnector = Connector<SftpConfig, SftpCredentials>

/**
 * Writes the document to a hidden file in the final folder, then renames it: the final path never has an incomplete
 * document. Or writes it in place, if the destination says so.
 */
export const deliver: SftpConnector['deliver'] = async (payload, target, context) => {
  const folders = targetSegments(payload.path, { names: target.config.file_names, hasPropertyFiles: true })
  const name = folders.pop() ?? ''
  const folder = posix.join(target.config.directory, ...folders)
  const path = posix.join(folder, name)
  let startByte = 0
  await withSession(target, context, async (session) => {
    await requireFolder(session, target.config.directory, context.signal)
    const noFolder = await makeFolders(session, target.config.directory, folders, context.signal)
    const { sizeBytes, sha256, attempt } = payload
    const partOf = await preparePartFiles(session, target.config, folder, context.signal)
    const file = documentFile(name, payload.deliveryId, target.config.part_file)
    const part = partOf(file.partName)
    const address = urlOf(target.config, part)
    const begun = target.config.write === 'rename' ? await openBegun(session, part, address, payload, context) : undefined
    startByte = begun?.startByte ?? 0
    const source = openPayload(payload, { ...context, startByte })
    const upload = followUpload(address, startByte, packetBytes, sizeBytes, context)
    const document = { name, part, sizeBytes, sha256, source, begun, upload }
    try {
      await writerOf(target.config)(
        session,
        folder,
        [...sidecarsOf(name, payload, target.config, partOf), document],
        attempt,
        context.signal,
      )
    } catch (thrown) {
      throw noFolder !== undefined && isAbsent(thrown) ? noFolder : thrown
    } finally {
      source.destroy()
    }
  })
  return { path: urlOf(target.config, path), bytesSent: payload.sizeBytes - startByte }
}

/** Writes the properties of a delivered document into the file beside it. */
export const updateMetadata: NonNullable<SftpConnector['updateMetadata']> = async (copy, target, context) => {
  const { directory } = target.config
  const path = posix.join(directory, ...targetSegments(copy.path, { names: target.config.file_names, hasPropertyFiles: true }))
  requireSameLocation(copy, urlOf(target.config, path))
  await withSession(target, context, async (session) => {
    await requireFolder(session, directory, context.signal)
    const folder = posix.dirname(path)
    const partOf = await preparePartFiles(session, target.config, folder, context.signal)
    await writerOf(target.config)(session, folder, sidecarsOf(posix.basename(path), copy, target.config, partOf), 1, context.signal)
  })
}

/** Reads bytes of a stored file. A server that no longer has the folder of the destination is not one that lacks the file. */
export const read: NonNullable<SftpConnector['read']> = async (copy, span, target, context, take) => {
  const { directory, file_names: names } = target.config
  const path = posix.join(directory, ...targetSegments(copy.path, { names, hasPropertyFiles: true }))
  let isThere = true
  await withSession(target, context, async (session) => {
    try {
      await take(readFile(session, path, span, context.signal))
    } catch (thrown) {
      if (!isAbsent(thrown)) throw thrown
      await requireFolder(session, directory, context.signal)
      isThere = false
    }
  })
  return isThere
}

type PartOf = (partName: string) => string

/** Creates the folder of part files, if the destination has one. @returns the path of a part file of a file in `folder` */
const preparePartFiles = async (
  session: SftpSession,
  { directory, write, part_file: partFile }: SftpConfig,
  folder: string,
  signal: AbortSignal,
): Promise<PartOf> => {
  const folders = partFolders(partFile)
  if (folders === undefined || write === 'in_place') return (partName) => posix.join(folder, partName)
  const refusal = await makeFolders(session, directory, folders, signal)
  if (refusal !== undefined && (await folderState(session, posix.join(directory, ...folders), signal)) === 'absent') throw refusal
  return (partName) => posix.join(directory, partName)
}

const sidecarsOf = (
  name: string,
  copy: Pick<Payload, 'deliveryId' | 'properties'>,
  { part_file: partFile }: Pick<SftpConfig, 'part_file'>,
  partOf: PartOf,
) => sidecarFiles(name, copy, partFile).map(({ partName, ...file }) => contentOf({ ...file, part: partOf(partName) }))

const contentOf = ({ bytes, ...file }: { name: string; part: string; bytes: Buffer }): NamedContent => ({
  ...file,
  sizeBytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  source: Readable.from([bytes]),
})

interface NamedContent extends Content {
  name: string
  /** The path under which it is written first. */
  part: string
  sha256: string
}

/**
 * Writes files. The document comes last, so that a program that finds it also finds its properties. A server may forbid to replace a file:
 * one that has the content already is in place.
 * @param attempt counts the attempts of the delivery
 */
type WriteFiles = (session: SftpSession, folder: string, files: NamedContent[], attempt: number, signal: AbortSignal) => Promise<void>

/** Writes files under the names of part files, then gives each its name, which may exist. */
const writeAndRename: WriteFiles = async (session, folder, files, attempt, signal) => {
  try {
    for (const { part, ...content } of files) await writeFile(session, part, content, signal)
    for (const { part: from, name, ...wanted } of files) {
      const to = posix.join(folder, name)
      const placed = await storeOrFind<'renamed' | 'found'>(() => replace(session, from, to, signal), {
        attempt,
        refusalOf,
        look: () => findFile(session, to, wanted, signal),
        toError: sftpError,
      })
      if (placed === 'found') await cleanUp(session, from)
    }
  } catch (thrown) {
    for (const { part, upload } of files) {
      if (upload?.keepsAfter(thrown) !== true) await cleanUp(session, part)
    }
    throw thrown
  }
}

/** Writes files under their names. Nothing is done after a file is closed, because the server may have taken it then. */
const writeInPlace: WriteFiles = async (session, folder, files, attempt, signal) => {
  for (const { name, ...content } of files) {
    const path = posix.join(folder, name)
    const handle = await storeOrFind<Buffer | 'found'>(() => openFile(session, path, signal), {
      attempt,
      refusalOf,
      look: () => findFile(session, path, content, signal),
      toError: sftpError,
    })
    if (handle === 'found') continue
    await fillFile(session, path, handle, content, signal).catch(async (thrown: unknown) => {
      // A part of a document. What the file contained before is lost.
      await cleanUp(session, path)
      throw thrown
    })
  }
}

const writerOf = ({ write }: SftpConfig): WriteFiles => (write === 'in_place' ? writeInPlace : writeAndRename)

interface Content {
  sizeBytes: number
  source: AsyncIterable<Buffer>
  /** What an earlier attempt has written, and how far this one comes. Absent if the file is written from its beginning each time. */
  begun?: Begun | undefined
  upload?: ReturnType<typeof followUpload>
}

/** Does what a delivery does: writes a file, and creates a folder. */
export const probe: SftpConnector['probe'] = async (target, context) => {
  const { host, directory, write } = target.config
  const { signal } = context
  const isInPlace = write === 'in_place'
  const id = newId()
  const partName = partFileName('probe', id)
  // In place, a server may accept only the names that documents have. Otherwise, no program should take it for one.
  const name = isInPlace ? `relay-test-${id}.txt` : partName.replace(/\.part$/, '')
  const path = posix.join(directory, name)
  const folder = posix.join(directory, isInPlace ? `relay-test-${id}` : `${name}-folder`)
  const bytes = Buffer.from('.')
  const notes: string[] = []
  let isTaken = false
  const { hostKey } = await withSession(target, context, async (session) => {
    await requireFolder(session, directory, signal)
    const partOf = await preparePartFiles(session, target.config, directory, signal)
    const file = contentOf({ name, part: partOf(partFileName('probe', id, target.config.part_file)), bytes })
    await writerOf(target.config)(session, directory, [file], 1, signal)
    const found = await findFile(session, path, file, signal).catch((): Found<'found'> => ({ state: 'unknown', needs: '' }))
    await session
      .call(`removal of ${path}`, (done) => session.sftp.unlink(path, done), signal)
      .catch(async (thrown: unknown) => {
        isTaken = isInPlace && isAbsent(thrown)
        if (isTaken) return
        await cleanUp(session, path)
        throw thrown
      })
    if (found.state !== 'ours' && !isTaken) {
      notes.push('It cannot read the file, so a document that may not be replaced is not recognised.')
    }
    await makeAndRemoveFolder(session, folder, signal).catch((thrown: unknown) => {
      // Servers that take files often have no folders.
      if (!isInPlace || typeof sftpStatusOf(thrown) !== 'number') throw thrown
      notes.push(`It cannot create folders, so path_template must name none (${operationOf(thrown)}: ${messageOf(thrown)}).`)
    })
  })
  const written = isTaken
    ? `wrote the file ${name} in the folder ${directory}, and the server has taken it`
    : `wrote a file in the folder ${directory} and removed it`
  return [`The relay signed in at ${host}, ${written}. The server's host key is ${hostKey}.`, ...notes].join(' ')
}

const makeAndRemoveFolder = async (session: SftpSession, folder: string, signal: AbortSignal) => {
  await session.call(`creation of the folder ${folder}`, (done) => session.sftp.mkdir(folder, done), signal)
  // A delivery removes no folder.
  await session.call(`removal of the folder ${folder}`, (done) => session.sftp.rmdir(folder, done), signal).catch(() => {})
}

/** Returns an address in curl's form: `/~/` stands for the folder that the account has after login. */
const urlOf = ({ host, port }: SftpConfig, path: string) => `sftp://${host}:${port}${path.startsWith('/') ? '' : '/~/'}${path}`

const withSession = (
  target: Target<SftpConfig, SftpCredentials>,
  context: AttemptContext,
  act: (session: SftpSession) => Promise<void>,
): Promise<SftpSession> =>
  withDeliveryErrors(
    context,
    secretsIn(sftpCredentials, target.credentials),
    async () => {
      const session = await openSftpSession(target, context)
      try {
        await act(session)
        return session
      } finally {
        session.end()
      }
    },
    sftpError,
  )

const writeFile = async (session: SftpSession, path: string, content: Content, signal: AbortSignal) =>
  fillFile(session, path, content.begun?.handle ?? (await openFile(session, path, signal)), content, signal)

/** Opens a file to write it. What it contains is gone then. */
const openFile = ({ sftp: channel, call }: SftpSession, path: string, signal: AbortSignal) =>
  call<Buffer>(`open of ${path} to write it`, (done) => channel.open(path, 'w', done), signal)

const fillFile = async (
  session: SftpSession,
  path: string,
  handle: Buffer,
  { sizeBytes, source, begun, upload }: Content,
  signal: AbortSignal,
) => {
  const { sftp: channel, call } = session
  try {
    const startByte = begun?.startByte ?? 0
    const sizes = { sizeBytes: sizeBytes - startByte, partBytes: packetBytes, maxInFlight: maxWritesInFlight }
    await sendPartsInParallel(source, sizes, async (bytes, number) => {
      const at = startByte + (number - 1) * packetBytes
      await call(`write to ${path}`, (done) => channel.write(handle, bytes, 0, bytes.length, at, done), signal)
      upload?.onWritten(number)
    })
    await flushToDisk(session, path, handle, signal)
  } catch (thrown) {
    channel.close(handle, () => {})
    throw thrown
  }
  await call(`close of ${path}`, (done) => channel.close(handle, done), signal)
}

/** Uses an extension of OpenSSH. Without it, the server's answer to the close request has to suffice. */
const flushToDisk = async ({ sftp: channel, call }: SftpSession, path: string, handle: Buffer, signal: AbortSignal) => {
  await call(`flush of ${path}`, (done) => channel.ext_openssh_fsync(handle, done), signal).catch((error: unknown) => {
    if (!isMissingExtension(error)) throw error
  })
}

/** Renames a file to a name that may exist, for example because of an earlier run of this delivery. */
const replace = async ({ sftp: channel, call }: SftpSession, from: string, to: string, signal: AbortSignal): Promise<'renamed'> => {
  const what = `rename of ${from} to ${to}`
  try {
    await call(what, (done) => channel.ext_openssh_rename(from, to, done), signal)
    return 'renamed'
  } catch (thrown) {
    if (!isMissingExtension(thrown)) throw thrown
  }
  // The standard rename request refuses a name that exists.
  const exists = await call<Stats>(`stat of ${to}`, (done) => channel.stat(to, done), signal).then(
    () => true,
    (thrown: unknown) => (isAbsent(thrown) ? false : undefined),
  )
  const remove = () => call(`removal of ${to}`, (done) => channel.unlink(to, done), signal)
  const rename = () => call(what, (done) => channel.rename(from, to, done), signal)
  if (exists) await remove()
  await rename().catch(async (thrown: unknown) => {
    if (exists !== undefined || typeof sftpStatusOf(thrown) !== 'number') throw thrown
    // The server does not say whether the name exists.
    await remove().catch(() => {
      throw thrown
    })
    await rename()
  })
  return 'renamed'
}

/** @throws DeliveryError if the folder does not exist. A server that cannot tell is asked to write */
const requireFolder = async (session: SftpSession, folder: string, signal: AbortSignal) => {
  const state = await folderState(session, folder, signal)
  if (state === 'folder' || state === 'unknown') return
  throw new DeliveryError(
    'directory_missing',
    `${folder} ${state === 'absent' ? 'does not exist' : 'is not a folder'}; create the folder, or correct directory`,
  )
}

const fileTypeBits = 0o170_000

/** Returns what is at a path. Servers answer a stat with codes of their own, refuse it, or leave out the type: then it is unknown. */
const folderState = async ({ sftp: channel, call }: SftpSession, path: string, signal: AbortSignal) => {
  try {
    const stats = await call<Stats>(`stat of ${path}`, (done) => channel.stat(path, done), signal)
    if (stats.isDirectory()) return 'folder'
    return (stats.mode & fileTypeBits) === 0 ? 'unknown' : 'other'
  } catch (thrown) {
    if (isAbsent(thrown)) return 'absent'
    if (typeof sftpStatusOf(thrown) === 'number') return 'unknown'
    throw thrown
  }
}

/**
 * Creates the folders of a document, one by one.
 * @returns why one could not be created, if the server does not tell whether it exists: the write shows it
 */
const makeFolders = async (session: SftpSession, base: string, folders: string[], signal: AbortSignal): Promise<unknown> => {
  if (folders.length === 0 || (await folderState(session, posix.join(base, ...folders), signal)) === 'folder') return undefined
  let folder = base
  let refusal: unknown
  for (const segment of folders) {
    folder = posix.join(folder, segment)
    const created = folder
    await session
      .call(`creation of the folder ${created}`, (done) => session.sftp.mkdir(created, done), signal)
      .catch(async (thrown: unknown) => {
        // Another delivery may have created it at the same moment. SFTP has no status code for that.
        const state = await folderState(session, created, signal)
        if (state === 'unknown') refusal = thrown
        else if (state !== 'folder') throw thrown
      })
  }
  return refusal
}

/** Never throws: if the connection is lost, the next attempt overwrites the temporary file. */
const cleanUp = async ({ sftp: channel, call }: SftpSession, path: string) => {
  await call(`removal of ${path}`, (done) => channel.unlink(path, done), AbortSignal.timeout(cleanUpTimeoutMs)).catch(() => {})
}

// ssh2 throws this error itself if the server has not announced the extension.
const isMissingExtension = (thrown: unknown) =>
  sftpStatusOf(thrown) === ssh2.utils.sftp.STATUS_CODE.OP_UNSUPPORTED ||
  (thrown instanceof Error && thrown.message.startsWith('Server does not support'))
