import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm, rmdir, stat, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { messageOf } from '../../base/errors.ts'
import { grantedTo, type Grant } from '../../base/grants.ts'
import { newId } from '../../base/ids.ts'
import { DeliveryError, type AttemptContext, type ByteSpan, type Connector, type Payload } from '../connector.ts'
import { storeOrFind, type Found, type Refusal } from '../shared/earlier-copy.ts'
import { withDeliveryErrors } from '../shared/errors.ts'
import { during } from '../shared/operation.ts'
import { openPayload } from '../shared/payload-stream.ts'
import { folderPrefix } from '../shared/place.ts'
import { documentFile, requireSameLocation, sidecarFiles, sidecarProperties } from '../shared/properties.ts'
import { partFileName, partFolders, targetSegments } from '../shared/target-path.ts'
import { fileSystemError, systemCodeOf } from './errors.ts'
import { mountedFolder, type SeenMounts } from './mount.ts'
import { makeFolder, realFolder } from './real-folder.ts'
import { directoryConfig, directoryCredentials, type DirectoryConfig, type DirectoryCredentials, directoryExample } from './schema.ts'

// The time for removing the temporary file of a failed attempt, in milliseconds.
const cleanUpTimeoutMs = 1_500

/**
 * Writes the document to a hidden file in the final folder of a mounted file system, then renames it: the final path
 * never has an incomplete document. A repetition replaces the file with the same content.
 * @param grants are the directories below which destinations may write. Without any, every destination is refused.
 */
export const createDirectory = (grants: readonly Grant[]): Connector<DirectoryConfig, DirectoryCredentials> => {
  const seen: SeenMounts = new Map()
  const rootsOf = ({ workspace }: AttemptContext) => grantedTo(grants, workspace)
  /** Returns the real folder of a destination whose file system is mounted. Pins its mount point. */
  const openFolder = async ({ path, mount_point: expected }: DirectoryConfig, context: AttemptContext) => {
    const roots = rootsOf(context)
    const { folder, mountPoint } = await during(`look at the folder ${path}`, () =>
      completed(
        mountedFolder(path, expected, seen, () => realFolder(path, roots)),
        context,
      ),
    )
    if (expected === undefined && mountPoint !== undefined) context.pin({ mount_point: mountPoint })
    return folder
  }
  /** Creates the folder of part files, if the destination has one. @returns the path of a part file of a file in `folder` */
  const preparePartFiles = async ({ part_file: partFile }: DirectoryConfig, base: string, folder: string, context: AttemptContext) => {
    const folders = partFolders(partFile)
    const parent = folders === undefined ? folder : await makeFolders(base, folders, rootsOf(context), context)
    return (partName: string) => join(parent, basename(partName))
  }
  return {
    kind: 'directory',
    isAvailable: grants.length > 0,
    config: directoryConfig,
    credentials: directoryCredentials,
    boundKeys: [],
    pinnedKeys: ['mount_point'],
    example: directoryExample,

    deliver: (payload, { config }, context) =>
      inAttempt(context, async () => {
        const folders = targetSegments(payload.path, { names: config.file_names, hasPropertyFiles: true })
        const name = folders.pop() ?? ''
        const base = await openFolder(config, context)
        const folder = await makeFolders(base, folders, rootsOf(context), context)
        const partOf = await preparePartFiles(config, base, folder, context)
        const source = openPayload(payload, context)
        const files = sidecarsOf(name, payload, config, partOf)
        try {
          const { partName } = documentFile(name, payload.deliveryId, config.part_file)
          const document = { name, part: partOf(partName), source }
          const note = await writeFiles(folder, [...files, document], payload.attempt, context, () => openFolder(config, context))
          return {
            path: join(config.path, ...folders, name),
            bytesSent: payload.sizeBytes,
            ...(note !== undefined && { answer: { note } }),
          }
        } finally {
          source.destroy()
        }
      }),

    properties: sidecarProperties,
    updateMetadata: (copy, { config }, context) =>
      inAttempt(context, async () => {
        const folders = targetSegments(copy.path, { names: config.file_names, hasPropertyFiles: true })
        const name = folders.pop() ?? ''
        requireSameLocation(copy, join(config.path, ...folders, name))
        const base = await openFolder(config, context)
        const folder = await makeFolders(base, folders, rootsOf(context), context)
        const partOf = await preparePartFiles(config, base, folder, context)
        await writeFiles(folder, sidecarsOf(name, copy, config, partOf), 1, context, () => openFolder(config, context))
      }),

    read: (copy, span, { config }, context, take) =>
      inAttempt(context, async () => {
        const folders = targetSegments(copy.path, { names: config.file_names, hasPropertyFiles: true })
        const name = folders.pop() ?? ''
        const base = await openFolder(config, context)
        const path = join(base, ...folders)
        try {
          const folder = folders.length === 0 ? base : await completed(realFolder(path, rootsOf(context)), context)
          await take(readFile(join(folder, name), span, context))
          return true
        } catch (thrown) {
          const isAbsent =
            absentErrors.has(String(systemCodeOf(thrown))) || (thrown instanceof DeliveryError && thrown.code === 'directory_missing')
          if (!isAbsent) throw thrown
          // The file system may have gone in between.
          await openFolder(config, context)
          return false
        }
      }),
    placeKeys: ['path', 'file_names'],
    placeOf: ({ path }) => ({ container: '', prefix: folderPrefix(path) }),

    probe: ({ config }, context) =>
      inAttempt(context, async () => {
        const folder = await openFolder(config, context)
        const id = newId()
        const partOf = await preparePartFiles(config, folder, folder, context)
        const part = partOf(partFileName('probe', id, config.part_file))
        const file = { name: partFileName('probe', id).replace(/\.part$/, ''), part, source: [Buffer.from('.')] }
        const path = join(folder, file.name)
        const notes: string[] = []
        try {
          const note = await writeFiles(folder, [file], 1, context, () => openFolder(config, context))
          if (note !== undefined) notes.push(`A delivery will say: ${note}.`)
          await digestOf(path, context).catch(() => {
            notes.push('It cannot read the file, so a document that may not be replaced is not recognised.')
          })
          await during(`removal of ${path}`, () => completed(rm(path), context))
        } catch (thrown) {
          await cleanUp(path)
          throw thrown
        }
        const made = await makeFolderIn(folder, `${file.name}-folder`, rootsOf(context), context)
        // A delivery removes no folder.
        await completed(rmdir(made.folder), context).catch(() => {})
        const written = `The relay wrote a file in the folder ${config.path} and removed it, on the machine of this API process.`
        return [written, 'The workers need the same folder.', ...notes].join(' ')
      }),
  }
}

const inAttempt = <Result>(context: AttemptContext, act: () => Promise<Result>) => withDeliveryErrors(context, [], act, fileSystemError)

/** A file to be written. */
interface NamedSource {
  name: string
  /** The path under which it is written first. */
  part: string
  source: Readable | Buffer[]
}

const sidecarsOf = (
  name: string,
  copy: Pick<Payload, 'deliveryId' | 'properties'>,
  { part_file: partFile }: DirectoryConfig,
  partOf: (partName: string) => string,
): NamedSource[] =>
  sidecarFiles(name, copy, partFile).map(({ name: sidecar, partName, bytes }) => ({
    name: sidecar,
    part: partOf(partName),
    source: [bytes],
  }))

/**
 * Writes files under the names of part files, then gives each its name, which may exist. The document comes last, so that a program that finds
 * it also finds its properties. A file system may forbid to replace a file: one that has the content already is in place.
 * @param attempt counts the attempts of the delivery
 * @param requireMount throws if the file system of the folder is not mounted. What was written beside it has no name then, and what was written
 *   into it has none beside it
 * @returns what could not be done after the files were in place, which is no failure: a repetition would meet it again
 */
const writeFiles = async (
  folder: string,
  files: NamedSource[],
  attempt: number,
  context: AttemptContext,
  requireMount: () => Promise<unknown>,
): Promise<string | undefined> => {
  try {
    const written: { from: string; to: string; fileId: bigint }[] = []
    for (const { name, part: from, source } of files) {
      const fileId = await during(`write to ${from}`, () => writeFile(from, source, context))
      written.push({ from, to: join(folder, name), fileId })
    }
    await requireMount()
    for (const { from, to, fileId } of written) {
      const move = () => during(`rename of ${from} to ${to}`, () => moveFile(from, to, fileId, context).then(() => 'moved' as const))
      const look = () => during(`look at ${to}`, () => findSame(from, to, context))
      const placed = await storeOrFind<'moved' | 'found'>(move, { attempt, refusalOf, look, toError: fileSystemError })
      if (placed === 'found') await cleanUp(from)
    }
  } catch (thrown) {
    for (const { part } of files) await cleanUp(part)
    throw thrown
  }
  return flushFolder(folder, context)
}

/**
 * Renames a file. Network file systems repeat a rename whose answer was lost, and report that of the repetition, which no longer finds the
 * file: an error does not count if the file has its name.
 */
const moveFile = async (from: string, to: string, fileId: bigint, context: AttemptContext) => {
  await completed(rename(from, to), context).catch(async (thrown: unknown) => {
    const found = await completed(stat(to, { bigint: true }), context).catch(() => undefined)
    if (found?.ino !== fileId) throw thrown
  })
}

// A rename over a file that is immutable, or is retained by its storage (SnapLock answers EACCES or EROFS), or is in use.
const overwriteErrors = new Set(['EACCES', 'EPERM', 'EROFS', 'EEXIST', 'EBUSY', 'ETXTBSY'])

const refusalOf = (thrown: unknown): Refusal => (overwriteErrors.has(String(systemCodeOf(thrown))) ? 'perhaps' : undefined)

/** Looks whether a file has the content that was written beside it. */
const findSame = async (written: string, path: string, context: AttemptContext): Promise<Found<'found'>> => {
  try {
    const [ours, there] = await Promise.all([completed(stat(written), context), completed(stat(path), context)])
    if (!there.isFile() || ours.size !== there.size) return { state: 'other' }
    return (await digestOf(written, context)) === (await digestOf(path, context)) ? { state: 'ours', stored: 'found' } : { state: 'other' }
  } catch (thrown) {
    const code = systemCodeOf(thrown)
    if (code === 'ENOENT') return { state: 'absent' }
    if (code === 'EACCES' || code === 'EPERM') return { state: 'unknown', needs: "the worker's account may not read the file" }
    throw thrown
  }
}

// No file, or a folder, a link, a pipe or a socket in its place.
const absentErrors = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ESPIPE', 'ENXIO'])

const readBytes = 256 * 1024

/** Returns the SHA-256 of a file in lower-case hex. */
const digestOf = async (path: string, context: AttemptContext): Promise<string> => {
  const hash = createHash('sha256')
  for await (const bytes of readFile(path, { start: 0, end: Infinity }, context)) hash.update(bytes)
  return hash.digest('hex')
}

/** Reads bytes of a file, fewer if it has fewer. */
async function* readFile(path: string, { start, end }: ByteSpan, context: AttemptContext): AsyncGenerator<Buffer, void, undefined> {
  // Without O_NONBLOCK, a pipe would keep the thread until another program writes.
  const opening = open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const file = await completed(opening, context)
    for (let at = start; at <= end;) {
      const buffer = Buffer.allocUnsafe(Math.min(readBytes, end + 1 - at))
      const { bytesRead } = await completed(file.read(buffer, 0, buffer.length, at), context)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
    }
  } finally {
    closeLater(opening)
  }
}

const makeFolderIn = (parent: string, name: string, roots: readonly string[], context: AttemptContext) =>
  during(`creation of the folder ${join(parent, name)}`, () => completed(makeFolder(parent, name, roots), context))

/** Creates the folders of a document one by one, so that none is created beyond a symbolic link that leads outside. */
const makeFolders = async (base: string, names: string[], roots: readonly string[], context: AttemptContext): Promise<string> => {
  let parent = base
  for (const name of names) {
    const { folder, isNew } = await makeFolderIn(parent, name, roots, context)
    if (isNew) await flushFolder(parent, context)
    parent = folder
  }
  return parent
}

// Overwrites the temporary file of an earlier attempt, but not through a symbolic link of that name.
const writeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW

/** @returns the number of the file in its file system */
const writeFile = async (path: string, source: Readable | Buffer[], context: AttemptContext): Promise<bigint> => {
  const opening = open(path, writeFlags)
  try {
    const file = await completed(opening, context)
    for await (const chunk of source as AsyncIterable<Buffer>) await writeChunk(file, chunk, context)
    await flush(file, context)
    const { ino } = await completed(file.stat({ bigint: true }), context)
    await completed(file.close(), context)
    return ino
  } catch (thrown) {
    closeLater(opening)
    throw thrown
  }
}

const writeChunk = async (file: FileHandle, chunk: Buffer, context: AttemptContext) => {
  for (let at = 0; at < chunk.length;) at += (await completed(file.write(chunk, at), context)).bytesWritten
}

// What network file systems and those in user space answer that cannot flush: what they have taken is then as durable as they make it.
const unsupportedFlush = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'ENOTTY', 'ENOENT'])

// Bounded by the attempt only: flushing a large document to a slow disk can take longer than the idle timeout.
const flush = (file: FileHandle, context: AttemptContext) =>
  completed(file.sync(), { ...context, idleTimeoutMs: undefined }).catch((thrown: unknown) => {
    if (!unsupportedFlush.has(String(systemCodeOf(thrown)))) throw thrown
  })

/**
 * Makes the names in a folder durable, if its file system supports that. Never throws, because the names are there.
 * @returns why they may not be durable, for example because the account may create files in the folder and not read it
 */
const flushFolder = async (path: string, context: AttemptContext): Promise<string | undefined> => {
  const opening = open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await flush(await completed(opening, context), context)
    return undefined
  } catch (thrown) {
    return `the folder was not flushed to disk (${messageOf(thrown)})`
  } finally {
    closeLater(opening)
  }
}

/** Closes a file once it is open, which may be after the attempt has ended. */
const closeLater = (opening: Promise<FileHandle>) => {
  opening.then((file) => file.close()).catch(() => {})
}

/** Never throws: if the file system does not respond, the next attempt overwrites the temporary file. */
const cleanUp = async (path: string) => {
  await completed(rm(path, { force: true }), { signal: AbortSignal.timeout(cleanUpTimeoutMs), idleTimeoutMs: undefined }).catch(() => {})
}

/**
 * Waits for a file system call until the idle timeout or the end of the attempt. The call itself cannot be interrupted:
 * a network file system that hangs keeps its thread.
 */
const completed = async <Result>(
  call: Promise<Result>,
  { signal, idleTimeoutMs }: { signal: AbortSignal; idleTimeoutMs: number | undefined },
): Promise<Result> => {
  let timer: NodeJS.Timeout | undefined
  let stop = () => {}
  const ended = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    if (idleTimeoutMs === undefined) return
    const late = () => reject(new DeliveryError('timeout', `the file system did not respond within ${idleTimeoutMs} ms`))
    timer = setTimeout(late, idleTimeoutMs)
  })
  try {
    return await Promise.race([call, ended])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}
