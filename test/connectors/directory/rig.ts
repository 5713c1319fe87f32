import { createHash } from 'node:crypto'
import fs, { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Grant } from '../../../src/base/grants.ts'
import { createDirectory } from '../../../src/connectors/directory/index.ts'
import type { Rig, RunningTarget, Step } from '../rig.ts'

/** Creates a root with an archive folder in it, and the connector that may write there. */
export const createArchive = async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'relay-directory-')))
  const archive = join(root, 'archive')
  await mkdir(archive)
  const connector = createDirectory([{ value: root }])
  const target = (path = archive) => ({ config: connector.config.parse({ path }), credentials: {} })
  const remove = () => rm(root, { recursive: true })
  return { root, archive, connector, target, remove }
}

type Call = (path: string, ...rest: unknown[]) => Promise<unknown>

/** Lets the file system refuse a call below a folder, in this process. The superuser may do everything that a real one can refuse. @returns what ends it */
const refuseCall = (folder: string, name: 'open' | 'mkdir' | 'rename', refuse: (call: () => Promise<unknown>) => Promise<unknown>) => {
  const calls = fs as unknown as Record<typeof name, Call>
  const real = calls[name]
  calls[name] = (path, ...rest) => {
    const call = () => real(path, ...rest)
    return path.startsWith(folder) ? refuse(call) : call()
  }
  syncBuiltinESMExports()
  return async () => {
    calls[name] = real
    syncBuiltinESMExports()
  }
}

const failed = (code: string) => Promise.reject(Object.assign(new Error(`${code}: refused`), { code }))

/** Refuses a call to an open file. */
const refuseOfFile = (folder: string, name: 'write' | 'sync') =>
  refuseCall(folder, 'open', async (call) => Object.assign((await call()) as object, { [name]: () => failed('EIO') }))

const steps: Record<string, Step & { refuse(folder: string): () => Promise<void> }> = {
  'a new file': { refuse: (folder) => refuseCall(folder, 'open', () => failed('EACCES')), operation: /^write to \/\S+\.part: / },
  'the bytes': { refuse: (folder) => refuseOfFile(folder, 'write'), operation: /^write to \/\S+\.part: / },
  'a flush': { refuse: (folder) => refuseOfFile(folder, 'sync'), operation: /^write to \/\S+\.part: / },
  'a rename': { refuse: (folder) => refuseCall(folder, 'rename', () => failed('EPERM')), operation: /^rename of \/\S+\.part to \/\S+: / },
  'a folder': { refuse: (folder) => refuseCall(folder, 'mkdir', () => failed('EACCES')), operation: /^creation of the folder \/\S+: / },
}

export const rig: Rig = {
  kind: 'directory',
  usesNetwork: false,
  connectorIn: (settings) => createDirectory((settings as { roots: Grant[] }).roots),

  start: async (): Promise<RunningTarget> => {
    const { root, archive, connector, target, remove } = await createArchive()
    const files = async () => {
      const entries = await readdir(archive, { recursive: true, withFileTypes: true })
      return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
    }
    return {
      connector,
      processSettings: { roots: [{ value: root }] },
      target: () => target(),
      refusing: {
        steps,
        start: async (step) => {
          const folder = await mkdtemp(join(root, 'refusing-'))
          return { target: target(folder), stop: steps[step]!.refuse(folder) }
        },
      },
      missingLocation: { target: target(join(root, 'not-there')), code: 'directory_missing' },
      keepsContentType: false,
      properties: {
        names: ['Vendor', 'Rechnung: Nummer'],
        read: async (_payload, { path }) => JSON.parse(await readFile(`${path}.meta.json`, 'utf8')) as Record<string, string>,
      },
      read: async (_payload, { path }) => {
        if (!path.startsWith(`${archive}/`)) throw new Error(`Unexpected path ${path}`)
        const bytes = await readFile(path)
        return { sha256: createHash('sha256').update(bytes).digest('hex'), sizeBytes: bytes.length }
      },
      documents: async () => (await files()).filter((name) => !name.endsWith('.part')),
      leftovers: async () => (await files()).filter((name) => name.endsWith('.part')),
      reset: async () => {
        for (const name of await readdir(archive)) await rm(join(archive, name), { recursive: true })
      },
      stop: remove,
    }
  },

  hostSettings: [],
  tlsCases: [],

  startProbeTarget: async () => {
    const { root, archive, connector, remove } = await createArchive()
    const readOnly = join(root, 'read-only')
    await mkdir(readOnly)
    await chmod(readOnly, 0o500)
    await writeFile(join(root, 'file'), '')
    return {
      connector,
      config: { path: archive },
      credentials: {},
      mistakes: [
        ['a missing folder', { path: join(root, 'not-there') }, {}, /not-there does not exist or is not a folder; create the folder/],
        ['a file', { path: join(root, 'file') }, {}, /file does not exist or is not a folder/],
        // The superuser may write to every folder.
        ...(process.getuid?.() === 0 ? [] : [['a read-only folder', { path: readOnly }, {}, /no permission to write/] as Mistake]),
      ],
      stop: remove,
    }
  },

  secretSamples: [],
}

type Mistake = Awaited<ReturnType<Rig['startProbeTarget']>>['mistakes'][number]
