import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AppError, messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { createStores } from '../content/configured-stores.ts'
import type { Database } from '../db/database.ts'
import { createInstallation } from '../db/installation.ts'
import { allOf } from '../db/page.ts'
import { createManifests, partsOf, type Manifest, type ManifestPart } from '../proof/manifests.ts'
import { openProofKey } from '../proof/proof-key.ts'
import { createKeyRing } from '../security/seal.ts'
import { findWorkspace } from '../workspace/administration.ts'

interface Exported {
  day: string
  sha256: string
  documents: number
  /** Paths. */
  files: string[]
}

/**
 * `relay proof export`: writes the manifest of a day, its signature, its certificate and its time stamp into a folder.
 * A file that exists with the same bytes stays, so that a time stamp is added by a repetition. A failure leaves no file that it has written.
 * @throws `UserError` if there is none, a file exists with other bytes, or what is stored is not what was signed
 */
export const exportProof = async (
  db: Database,
  config: Config,
  { workspace: name, day, folder }: { workspace: string; day: string; folder: string },
): Promise<Exported> => {
  const workspace = await findWorkspace(db, name)
  const manifest = await createManifests(db)
    .find(workspace.id, day)
    .catch((thrown: unknown) => {
      if (!(thrown instanceof AppError)) throw thrown
      throw new UserError(`Workspace ${name} has no manifest of ${day}. It is made when the day (UTC) is over.`, { cause: thrown })
    })
  const { sha256, documents } = manifest
  const files: string[] = []
  const written: string[] = []
  try {
    await mkdir(folder, { recursive: true })
    for (const part of partsOf(manifest, await createStores(db, config))) {
      const path = join(folder, part.fileName)
      const isNew = await writePart(part, path, written)
      if ((await sha256Of(path)) !== part.sha256)
        throw new Error(isNew ? `what is stored of ${day} is not what was signed` : `${path} exists, with other bytes`)
      files.push(path)
    }
  } catch (thrown) {
    await Promise.allSettled(written.map((path) => unlink(path)))
    throw new UserError(`The manifest could not be written: ${messageOf(thrown)}`, { cause: thrown })
  }
  return { day, sha256, documents, files }
}

/** Writes a part into a new file. @param written gets its path as soon as it exists @returns false if there is a file */
const writePart = async (part: ManifestPart, path: string, written: string[]): Promise<boolean> => {
  const file = await open(path, 'wx').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== 'EEXIST') throw thrown
  })
  if (!file) return false
  written.push(path)
  await pipeline(part.open(), file.createWriteStream())
  return true
}

const sha256Of = async (path: string): Promise<string> => {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** `relay proof certificate`: the certificate that verifies the manifests of this installation, in PEM. */
export const proofCertificate = async (db: Database, { RELAY_SECRET_KEYS }: Config): Promise<string> =>
  (await openProofKey(db, createKeyRing(RELAY_SECRET_KEYS), await createInstallation(db).id())).certificate

/** `relay proof list`: newest first. */
export const listProofs = async (db: Database, name: string): Promise<Manifest[]> => {
  const { id } = await findWorkspace(db, name)
  return allOf((page) => createManifests(db).list(id, page))
}
