import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../db/database.ts'
import { storeFailed } from './store.ts'

// The end of an id is random, so the files spread evenly over 1,024 directories.
const shardCharacters = 2

/** Returns the folder of the file of a content. @param directory is CONTENT_DIR */
export const shardIn = (directory: string, contentId: string) => join(directory, contentId.slice(-shardCharacters))

/** The folder that is in CONTENT_DIR, and on no disk below its mount point. Not a file: every file there is a content. */
const markerName = '.document-relay'

// The contents that were stored last, among the last of all stores: there is no index of the stores.
const recentContents = 10_000
const soughtFiles = 20

/**
 * Watches that a directory is the one in which contents are stored. Without its mount, a mount point is an empty directory: contents would be stored on
 * the disk below it, and files that will come back would be taken for removed, with their rows.
 */
export const createContentDirectory = (db: Database, directory: string) => {
  const marker = join(directory, markerName)
  let wasMarked = false

  /** @param wasKnown true if the directory has had a mark */
  const mayBeMarked = async (wasKnown: boolean): Promise<boolean> => {
    const { rows } = await db.raw<{ rows: { id: string }[] }>(
      `
      select id
      from (select id, store, owned_at from contents order by id desc limit :recentContents) as recent
      where store = 'files'
        and owned_at is not null
      order by id desc
      limit :soughtFiles
      `,
      { recentContents, soughtFiles },
    )
    for (const { id } of rows) if (await exists(join(shardIn(directory, id), id))) return true
    return rows.length === 0 && !wasKnown
  }
  const find = async (): Promise<{ isMarked: boolean; problem?: string }> => {
    // Read before the first wait, during which another write may mark the directory.
    const wasKnown = wasMarked
    if (await exists(marker)) {
      wasMarked = true
      return { isMarked: true }
    }
    if (await mayBeMarked(wasKnown)) return { isMarked: false }
    const problem =
      `${directory} has neither the folder ${markerName} nor the contents that were stored last: its file system is probably not mounted. ` +
      `If they are lost, create the folder to store others`
    return { isMarked: false, problem }
  }

  return {
    /** Returns what is wrong with the directory, and undefined if contents may be stored there. */
    problem: async (): Promise<string | undefined> => (await find()).problem,
    /** @throws AppError `unavailable` if the file system of the directory is probably not mounted. Marks a directory that is used for the first time */
    require: async (): Promise<void> => {
      const { isMarked, problem } = await find()
      if (problem !== undefined) throw storeFailed('store', new Error(problem))
      if (isMarked) return
      await makeMarker(marker)
      wasMarked = true
    },
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (thrown: NodeJS.ErrnoException) => {
      if (thrown.code === 'ENOENT') return false
      throw storeFailed('store', thrown)
    },
  )

const makeMarker = async (path: string) => {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (thrown) {
    // Another write has created it.
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw storeFailed('store', thrown)
  }
}
