// A process of its own that mounts file systems, delivers to folders on them, and prints what has happened as JSON.
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryError } from '../../../src/connectors/connector.ts'
import { createDirectory } from '../../../src/connectors/directory/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { contextOf, payloadOf } from '../payloads.ts'

const base = process.argv[2] ?? ''
const outbound = createOutboundGuard({ allowedCidrs: [] })

interface Place {
  mountPoint: string
  root: string
  folder: string
  /** The folder does not exist on the disk below the mount point. */
  isOnlyMounted?: boolean
}

const places: Record<string, Place> = {
  'above the root': { mountPoint: 'mnt', root: 'mnt/allowed', folder: 'mnt/allowed/archive' },
  'at the root': { mountPoint: 'mnt', root: 'mnt', folder: 'mnt/archive' },
  'between root and folder': { mountPoint: 'mnt/nas', root: 'mnt', folder: 'mnt/nas/in/archive' },
  'between root and folder, which is nowhere else': { mountPoint: 'mnt/nas', root: 'mnt', folder: 'mnt/nas/archive', isOnlyMounted: true },
  'at the folder': { mountPoint: 'mnt/nas', root: 'mnt', folder: 'mnt/nas' },
  'behind a symbolic link': { mountPoint: 'mnt/nas', root: 'mnt', folder: 'mnt/link' },
}

const outcomeOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'success',
    (thrown: unknown) => {
      if (thrown instanceof DeliveryError) return `${thrown.code}, ${thrown.permanent ? 'final' : 'retried'}`
      throw thrown
    },
  )

/**
 * Delivers to a folder before its mount is gone, without it, and after it has returned.
 * @param memory `stored`: the process that has seen the mount is gone, and its mount point is in the config. `seen`: nothing is stored
 */
const tell = async (own: string, place: Place, memory: 'stored' | 'seen') => {
  const [mountPoint, root, folder] = [join(own, place.mountPoint), join(own, place.root), join(own, place.folder)]
  const makeFolder = () => (folder.endsWith('link') ? symlink(mountPoint, folder).catch(() => {}) : mkdir(folder, { recursive: true }))
  const mount = async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mountPoint])
    await makeFolder()
  }
  await mkdir(mountPoint, { recursive: true })
  if (!place.isOnlyMounted) await makeFolder()
  await mount()

  const pinned: Record<string, string> = {}
  const context = contextOf(outbound, { pin: (values) => void Object.assign(pinned, values) })
  let connector = createDirectory([{ value: root }])
  let config = {}
  const target = () => ({ config: connector.config.parse({ path: folder, ...config }), credentials: {} })
  const probe = () => outcomeOf(connector.probe(target(), context))
  const deliver = () => outcomeOf(connector.deliver(payloadOf(Buffer.from('x'), { path: 'R1/data' }), target(), context))

  const before = [await probe(), await deliver()]
  if (memory === 'stored') {
    config = pinned
    connector = createDirectory([{ value: root }])
  }
  // The handle of a folder is closed later.
  execFileSync('umount', ['--lazy', mountPoint])
  const without = [await probe(), await deliver()]
  const onTheDisk = (await readdir(mountPoint, { recursive: true })).filter((entry) => entry.includes('R1'))
  await mount()
  const after = [await deliver()]
  execFileSync('umount', ['--lazy', mountPoint])
  return { pinned: pinned['mount_point']?.slice(own.length + 1), before, without, onTheDisk, after }
}

const told: Record<string, unknown> = {}
for (const [name, place] of Object.entries(places)) {
  for (const memory of ['stored', 'seen'] as const) {
    const own = join(base, `${name} ${memory}`)
    told[`${name}, ${memory}`] = await tell(own, place, memory)
  }
}
process.stdout.write(JSON.stringify(told))
