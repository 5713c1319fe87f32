import { createHash } from 'node:crypto'
import { close, createReadStream, open as openWithCallback, read } from 'node:fs'
import { mkdir, open, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { newId } from '../base/ids.ts'
import { unlessAborted } from '../base/unless-aborted.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createContentDirectory, shardIn } from './content-directory.ts'
import { createFileCalls, LateError, type FileCalls } from './file-calls.ts'
import {
  clampRange,
  discardWithBytes,
  insertUnownedContent,
  removeWithBytes,
  storeFailed,
  unownedContent,
  type ContentStore,
  type NotRemoved,
  type RemoveBytes,
  type UnownedContent,
} from './store.ts'

export type FilesStoreConfig = Pick<Config, 'CONTENT_DIR_MIN_BYTES'> & { CONTENT_DIR: string }

const readBytes = 256 * 1024
// One write while the next part is received and hashed. An upload holds this size in memory twice.
const writeBytes = 1024 * 1024

/**
 * Stores each content of at least CONTENT_DIR_MIN_BYTES as a file, and smaller ones in PostgreSQL: those are committed with their document,
 * which costs less than to sync a file. The row in `contents` is written before the file and deleted together with it, so every file has
 * a row. A file never changes. Nothing is stored or removed while the file system of the directory is not mounted.
 */
export const createFilesStore = (
  db: Database,
  postgres: ContentStore,
  config: FilesStoreConfig,
  calls: FileCalls = createFileCalls(),
): ContentStore => {
  const { openToRead, readInto, closeLater, readOperations } = createReadOperations(calls)
  const directoryOf = (contentId: string) => shardIn(config.CONTENT_DIR, contentId)
  const fileOf = (contentId: string) => join(directoryOf(contentId), contentId)

  // By directory. Another process may have created a directory and not synced its entry yet, so each process syncs it once.
  const created = new Map<string, Promise<void>>()
  const ensureDirectory = (directory: string) => {
    const creation = created.get(directory) ?? calls.make(() => createDirectory(directory))
    created.set(directory, creation)
    return creation
  }

  const contentDirectory = createContentDirectory(db, config.CONTENT_DIR)
  const requireDirectory = () =>
    calls.make(contentDirectory.require).catch((thrown: unknown) => {
      throw thrown instanceof LateError ? storeFailed('store', thrown) : thrown
    })

  const removeFile = async (id: string) => {
    await rm(fileOf(id), { force: true })
    // A file must not come back after its row is gone: nothing would ever remove it.
    await syncDirectory(directoryOf(id)).catch(ignore('ENOENT'))
  }
  const removeFiles: RemoveBytes = async (contentIds, signal) => {
    await unlessAborted(requireDirectory, signal)
    const kept: NotRemoved[] = []
    const remove = (id: string) => unlessAborted(() => calls.make(() => removeFile(id)), signal)
    for (const id of contentIds) {
      await remove(id).catch((thrown: unknown) => {
        if (!isSystemError(thrown)) throw storeFailed('remove', thrown)
        kept.push({ id, reason: thrown.message })
      })
    }
    return kept
  }
  const discard = (id: string) => discardWithBytes(db, id, removeFiles)

  /** Creates the file of a new content. The caller either finishes or abandons it. */
  const createFile = async (workspaceId: string) => {
    await requireDirectory()
    const id = newId()
    const directory = directoryOf(id)
    await insertUnownedContent(db, { id, workspaceId, store: 'files' })

    let file: FileHandle | undefined
    const abandon = async () => {
      created.delete(directory)
      // A write that hangs ends first.
      if (file) calls.makeLater(() => file!.close())
      await discard(id)
    }
    try {
      await orUnavailable(ensureDirectory(directory))
      file = await orUnavailable(
        calls.make(
          () => open(fileOf(id), 'wx', 0o600),
          (late) => late.close(),
        ),
      )
    } catch (thrown) {
      // A file that is created late needs its row.
      if (thrown instanceof Error && thrown.cause instanceof LateError) created.delete(directory)
      else await abandon()
      throw thrown
    }
    const hash = createHash('sha256')
    let sizeBytes = 0
    const writer = createWriter(file, calls)
    return {
      write: async (chunk: Uint8Array) => {
        hash.update(chunk)
        sizeBytes += chunk.length
        await writer.write(chunk)
      },
      /** The file survives a power failure once this has resolved. */
      finish: async (): Promise<UnownedContent> => {
        await writer.finish()
        await orUnavailable(calls.make(() => syncDirectory(directory)))
        // The mount may have gone, or returned, since the file was opened.
        await Promise.all([requireDirectory(), orUnavailable(calls.make(() => stat(fileOf(id))))])
        return unownedContent({ id, sizeBytes, sha256: hash.digest() }, discard)
      },
      abandon,
    }
  }

  return {
    kind: 'files',

    write: async (workspaceId, source, bufferMaxBytes) => {
      const start: Uint8Array[] = []
      let startBytes = 0
      let file: Awaited<ReturnType<typeof createFile>> | undefined
      try {
        for await (const chunk of source) {
          if (file) {
            await file.write(chunk)
            continue
          }
          start.push(chunk)
          startBytes += chunk.length
          if (startBytes < config.CONTENT_DIR_MIN_BYTES) continue
          file = await createFile(workspaceId)
          for (const first of start.splice(0)) await file.write(first)
        }
        if (!file && startBytes < config.CONTENT_DIR_MIN_BYTES) return await postgres.write(workspaceId, each(start), bufferMaxBytes)
        file ??= await createFile(workspaceId)
        return await file.finish()
      } catch (thrown) {
        await file?.abandon()
        throw thrown
      }
    },

    read: (content, byteRange) => {
      const range = clampRange(content, byteRange)
      return range ? createReadStream(fileOf(content.id), { ...range, highWaterMark: readBytes, fs: readOperations }) : Readable.from([])
    },

    readShort: async (content, { start, end }) => {
      const file = await openToRead(fileOf(content.id), 'r')
      try {
        const bytes = Buffer.allocUnsafe(end - start + 1)
        for (let filled = 0; filled < bytes.length;) {
          filled += await readInto(file, bytes, filled, bytes.length - filled, start + filled)
        }
        return bytes
      } finally {
        closeLater(file)
      }
    },

    sizesOf: async (contentIds) => {
      const sizes = new Map<string, number>()
      for (const id of contentIds) {
        const found = await calls.make(() => stat(fileOf(id))).catch(ignore('ENOENT'))
        if (found) sizes.set(id, found.size)
      }
      return sizes
    },

    remove: (contentIds, signal) => removeWithBytes(db, contentIds, removeFiles, signal),
  }
}

async function* each(chunks: Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  yield* chunks
}

/** Writes a file in large parts, each while the next one is received. @throws AppError `unavailable` */
const createWriter = (file: FileHandle, calls: FileCalls) => {
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  let writing = Promise.resolve()
  const writeWaiting = async () => {
    await writing
    const [part, bytes] = [waiting, waitingBytes]
    writing = calls.make(() => writePart(file, part, bytes))
    // The next `await` throws the error.
    writing.catch(() => {})
    waiting = []
    waitingBytes = 0
  }
  return {
    write: async (chunk: Uint8Array) => {
      waiting.push(chunk)
      waitingBytes += chunk.length
      if (waitingBytes >= writeBytes) await orUnavailable(writeWaiting())
    },
    finish: () =>
      orUnavailable(
        writeWaiting()
          .then(() => writing)
          .then(() => calls.make(() => file.datasync()))
          .then(() => calls.make(() => file.close())),
      ),
  }
}

const writePart = async (file: FileHandle, chunks: Uint8Array[], bytes: number) => {
  const { bytesWritten } = await file.writev(chunks)
  if (bytesWritten < bytes) throw new Error(`only ${bytesWritten} of ${bytes} bytes were written`)
}

const orUnavailable = async <Result>(step: Promise<Result>): Promise<Result> => {
  try {
    return await step
  } catch (thrown) {
    throw storeFailed('store', thrown)
  }
}

const ignore = (code: string) => (thrown: NodeJS.ErrnoException) => {
  if (thrown.code !== code) throw thrown
}

const isSystemError = (thrown: unknown): thrown is NodeJS.ErrnoException => thrown instanceof Error && 'syscall' in thrown

type Callback = (error: Error | null, ...result: unknown[]) => void
type Operation = (...args: never[]) => void

// The stream reads only bytes that the content has, so the file must not end.
const endIn = (bytesRead: unknown) => (bytesRead === 0 ? new Error('the file is shorter than its content') : null)

/** Returns what a stream needs to read a file. Errors are those of the store. */
const createReadOperations = (calls: FileCalls) => {
  /** @param problemIn returns what is wrong with a result */
  const through =
    (operation: Operation, problemIn: (result: unknown) => Error | null = () => null, dispose = (_late: unknown) => {}) =>
    (...args: unknown[]) => {
      const callback = args.pop() as Callback
      const make = () =>
        new Promise<unknown[]>((resolve, reject) => {
          const report: Callback = (error, ...result) => (error ? reject(error) : resolve(result))
          operation(...([...args, report] as never[]))
        })
      calls
        .make(make, ([late]) => dispose(late))
        .then(
          (result) => {
            const problem = problemIn(result[0])
            callback(problem && storeFailed('read', problem), ...result)
          },
          (thrown: unknown) => callback(storeFailed('read', thrown)),
        )
    }

  // Nothing was written, so there is no error to report, and nothing to wait for.
  const closeLater = (file: number) => calls.makeLater(() => promisify(close)(file))
  const readOperations = {
    open: through(openWithCallback, undefined, (late) => closeLater(late as number)),
    read: through(read, endIn),
    close: (file: number, callback: (error: null) => void) => {
      closeLater(file)
      callback(null)
    },
  }
  return {
    readOperations,
    closeLater,
    openToRead: promisify(readOperations.open) as (file: string, flags: string) => Promise<number>,
    readInto: promisify(readOperations.read) as (
      file: number,
      target: Buffer,
      offset: number,
      length: number,
      position: number,
    ) => Promise<number>,
  }
}

/** Creates a directory, unless it exists, whose entry survives a power failure. Its parent must exist. */
export const createDirectory = async (directory: string): Promise<void> => {
  await mkdir(directory, { mode: 0o700 }).catch(ignore('EEXIST'))
  await syncDirectory(dirname(directory))
}

/** Makes the entries of a directory durable: that of a new file is not, even if the file itself is. */
const syncDirectory = async (directory: string) => {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
