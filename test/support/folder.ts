import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Folder extends AsyncDisposable {
  path: string
}

/** Creates an empty folder that is removed with everything in it when it is disposed of. */
export const createFolder = async (): Promise<Folder> => {
  const path = await mkdtemp(join(tmpdir(), 'relay-test-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
