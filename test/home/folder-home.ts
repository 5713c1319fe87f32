import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { opaqueBytes } from '../support/source-system.ts'
import type { HomeScene, HomeWorkspace } from './scene.ts'

/** Returns a function that creates a workspace whose home is a folder of its own. @param root the folder of these folders */
export const createFolderHomes = (scene: HomeScene, root: string) => {
  let folders = 0
  return async (more?: Parameters<HomeScene['workspace']>[1]) => {
    const folder = join(root, `home-${(folders += 1)}`)
    await mkdir(folder)
    const found = await scene.workspace({ connector: 'directory', config: { path: folder } }, more)
    const fileOf = (docId: string, compId = 'data') => join(folder, 'Z1', docId, compId)
    /** Changes one byte of a document at its home. */
    const spoil = async (docId: string, at: number) => {
      const bytes = await readFile(fileOf(docId))
      bytes[at]! ^= 1
      await writeFile(fileOf(docId), bytes)
    }
    return { ...found, folder, fileOf, spoil }
  }
}

/** Creates a document, delivers it to its home and removes it here. @returns its bytes */
export const atHome = async (home: HomeWorkspace, docId: string, sizeBytes: number): Promise<Buffer> => {
  const bytes = opaqueBytes(sizeBytes)
  expect((await home.source.create(docId, bytes)).status).toBe(201)
  expect((await home.deliver()).at(-1)).toEqual({ status: 'delivered' })
  await home.move()
  expect(await home.storeOf(docId)).toBe('home')
  return bytes
}
