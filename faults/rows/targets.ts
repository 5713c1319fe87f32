// Faults of targets, of the content store and of the network.
import { execFile } from 'node:child_process'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startWormStore, type WormStore } from '../../test/support/worm-store.ts'
import { startBystander } from '../bystander.ts'
import type { Installation } from '../installation.ts'
import type { Row } from '../run-row.ts'

const run = promisify(execFile)

const hanging: Row = {
  name: 'target-hanging',
  fault: 'Every target accepts connections and answers nothing for 12 s (long form: 60 s), and answers again',
  acceptsAlways: true,
  mayDuplicate: 'a target that has taken a document and not answered gets it again, with the same id',
  run: async ({ installation: { targets }, returned, hold }) => {
    const proxies = [targets.all.objstore.proxy!, targets.all.sftp.proxy!, targets.all.webhook.proxy!]
    for (const proxy of proxies) proxy.set({ kind: 'silent' })
    await hold(12_000, 60_000)
    for (const proxy of proxies) proxy.set({ kind: 'up' })
    returned()
  },
}

const resetting: Row = {
  name: 'target-resets-answers',
  fault: 'Every target takes documents, and resets the connection with the first byte of its answer, for 5 s (long form: 30 s)',
  acceptsAlways: true,
  mayDuplicate: 'a target that has taken a document and not answered gets it again, with the same id',
  run: async ({ installation: { targets }, returned, hold }) => {
    const proxies = [targets.all.objstore.proxy!, targets.all.sftp.proxy!, targets.all.webhook.proxy!]
    for (const proxy of proxies) proxy.set({ kind: 'resets-answers' })
    await hold(5_000, 30_000)
    for (const proxy of proxies) proxy.set({ kind: 'up' })
    returned()
  },
}

const late: Row = {
  name: 'target-answers-late',
  fault: 'A webhook answers 200 after 13 s, when the relay has given up, for 10 s (long form: 60 s). Then it answers at once',
  kinds: ['webhook'],
  acceptsAlways: true,
  mayDuplicate: 'the target has taken the document before the relay gave up, and gets it again, with the same id',
  run: async ({ installation: { targets }, returned, hold }) => {
    targets.web.answerWith((_, response) => void setTimeout(() => response.end('late'), 13_000))
    await hold(10_000, 60_000)
    targets.web.answerWith((_, response) => void response.end('accepted'))
    returned()
  },
  cleanUp: async ({ targets }) => targets.web.answerWith((_, response) => void response.end('accepted')),
}

const slow: Row = {
  name: 'target-answers-slowly',
  longOnly: true,
  fault: 'A webhook answers 200 at once, and then one byte of the body each second for 6 s, during 8 s (long form: 60 s)',
  kinds: ['webhook'],
  acceptsAlways: true,
  run: async ({ installation: { targets }, returned, hold }) => {
    targets.web.answerWith((_, response) => {
      response.writeHead(200)
      let bytes = 0
      const timer = setInterval(() => {
        bytes += 1
        response.write('.')
        if (bytes < 6) return
        clearInterval(timer)
        response.end()
      }, 1_000)
    })
    await hold(8_000, 60_000)
    targets.web.answerWith((_, response) => void response.end('accepted'))
    returned()
  },
  cleanUp: async ({ targets }) => targets.web.answerWith((_, response) => void response.end('accepted')),
}

/** The stores of a run of `answer-lost-immutable`, each before the proxy of its target. */
let worms: { kind: 'objstore' | 'blob'; store: WormStore }[] = []

const answerLostImmutable: Row = {
  name: 'answer-lost-immutable',
  fault:
    'An S3 store and a Blob storage that forbid to overwrite take documents and close the connection instead of answering, for 8 s (long form: 60 s). Then they answer, and still forbid to overwrite',
  kinds: ['objstore', 'blob'],
  acceptsAlways: true,
  prepare: async ({ targets }) => {
    const { objstore, blob } = targets.all
    const s3 = await startWormStore(objstore.proxy!.port, 's3', { status: 403, code: 'AccessDenied', message: 'Access Denied' })
    const immutable = await startWormStore(blob.proxy!.port, 'blob', { status: 409, code: 'BlobImmutableDueToPolicy' })
    worms = [
      { kind: 'objstore', store: s3 },
      { kind: 'blob', store: immutable },
    ]
  },
  configs: ({ targets }) =>
    Object.fromEntries(
      worms.map(({ kind, store }) => {
        const { config, proxy } = targets.all[kind]
        return [kind, JSON.parse(JSON.stringify(config).replace(`:${proxy!.port}`, `:${store.port}`)) as object]
      }),
    ),
  run: async ({ returned, hold, note }) => {
    for (const { store } of worms) store.loseAnswers(true)
    await hold(8_000, 60_000)
    for (const { store } of worms) store.loseAnswers(false)
    returned()
    for (const { kind, store } of worms) {
      if (store.lost() === 0) throw new Error(`no answer of ${kind} was lost`)
      note(`${store.lost()} x ${kind} had stored a document whose answer was lost`)
    }
  },
  cleanUp: async () => {
    for (const { store } of worms) await store.stop()
    worms = []
  },
}

const dnsFailing: Row = {
  name: 'dns-failing',
  fault: 'The name of a target cannot be resolved (EAI_AGAIN) for 8 s (long form: 60 s)',
  kinds: ['webhook'],
  acceptsAlways: true,
  configs: ({ targets }) => ({ webhook: { url: `http://webhook.test:${targets.all.webhook.proxy!.port}/` } }),
  run: async ({ installation: { targets, dnsOutageFile }, returned, hold }) => {
    await writeFile(dnsOutageFile, '')
    // Connections that are kept open need no name.
    targets.all.webhook.proxy!.set({ kind: 'down' })
    targets.all.webhook.proxy!.set({ kind: 'up' })
    await hold(8_000, 60_000)
    await rm(dnsOutageFile)
    returned()
  },
  cleanUp: ({ dnsOutageFile }) => rm(dnsOutageFile, { force: true }),
}

// Creates that need a silent store are refused within this time.
const refusedWithinMs = 35_000

const contentsAway: Row = {
  name: 'contents-away',
  fault: 'The content store (S3) resets every connection for 8 s (long form: 60 s), and returns',
  variables: ({ contentsInS3 }) => contentsInS3,
  run: async ({ installation: { proxies }, returned, hold }) => {
    proxies.contents.set({ kind: 'down' })
    await hold(8_000, 60_000)
    proxies.contents.set({ kind: 'up' })
    returned()
  },
}

const cannotMount = async () =>
  process.getuid?.() === 0 && process.platform === 'linux' ? undefined : 'it mounts a file system, which only root may do, on Linux'

const folderOf = ({ targets }: Installation) => (targets.all.directory.config as { path: string }).path
// Keeps the file system while nothing is mounted at the folder.
const diskOf = ({ workDir }: Installation) => join(workDir, 'mount-gone')

const mountGone: Row = {
  name: 'mount-gone',
  fault:
    'The mount (tmpfs) at the folder of a directory goes away for 8 s (long form: 60 s), and returns with its files. The folder below it exists',
  kinds: ['directory'],
  acceptsAlways: true,
  cannotRun: cannotMount,
  prepare: async (installation) => {
    const disk = diskOf(installation)
    await mkdir(disk)
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4g', 'tmpfs', disk])
    await run('mount', ['--bind', disk, folderOf(installation)])
  },
  run: async ({ installation, returned, hold, note }) => {
    const folder = folderOf(installation)
    // Files are open.
    await run('umount', ['--lazy', folder])
    await hold(8_000, 60_000)
    const below = await readdir(folder, { recursive: true, withFileTypes: true })
    const files = below.filter((entry) => entry.isFile())
    if (files.length > 0) throw new Error(`${files.length} files are on the disk below the mount point: ${files[0]!.name}`)
    await run('mount', ['--bind', diskOf(installation), folder])
    returned()
    note('nothing was written to the disk below the mount point')
  },
  cleanUp: async (installation) => {
    await run('umount', ['--lazy', folderOf(installation)]).catch(() => {})
    await run('umount', ['--lazy', diskOf(installation)])
  },
}

const contentsSilent: Row = {
  name: 'contents-silent',
  fault:
    'The content store (S3) accepts connections and answers nothing for 12 s (long form: 60 s), and returns. Requests that need no store are ' +
    'answered meanwhile',
  variables: ({ contentsInS3 }) => contentsInS3,
  // More creates at a time than the pool has connections: none of them may hold one while it waits.
  load: { clients: 16, intervalMs: 4_000, largestBytes: 8 * 1024 * 1024 },
  run: async ({ installation: { proxies, baseUrls }, workspace, load, returned, note, hold }) => {
    const before = load.sent.length
    const bystander = startBystander(baseUrls, workspace)
    proxies.contents.set({ kind: 'silent' })
    await hold(12_000, 60_000)
    const { requests, refused, slowestMs } = await bystander.stop()
    const slowestCreateMs = Math.max(0, ...load.sent.slice(before).map(({ durationMs }) => durationMs))
    proxies.contents.set({ kind: 'up' })
    returned()
    note(
      `${requests} requests that need no store: ${refused.length} refused, the slowest took ${Math.round(slowestMs)} ms; the slowest create ` +
        `that was answered meanwhile took ${(slowestCreateMs / 1_000).toFixed(1)} s`,
    )
    if (refused.length > 0) throw new Error(`Requests that need no store were refused: ${refused.slice(0, 5).join(', ')}`)
    if (slowestCreateMs > refusedWithinMs) throw new Error(`A create was answered after ${Math.round(slowestCreateMs)} ms`)
  },
}

const contentsFull: Row = {
  name: 'contents-full',
  longOnly: true,
  fault:
    'The file system of the content store (a tmpfs of a limited size under the S3 server) becomes full for 8 s (long form: 60 s), and grows again',
  variables: ({ contentsInS3 }) => contentsInS3,
  cannotRun: cannotMount,
  prepare: async ({ contentStore }) => {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4g', 'tmpfs', contentStore.folder])
  },
  run: async ({ installation: { contentStore }, returned, hold }) => {
    const { stdout } = await run('df', ['--output=used', '-B1', contentStore.folder])
    await run('mount', ['-o', `remount,size=${Number(stdout.split('\n')[1]) + 64 * 1024}`, contentStore.folder])
    await hold(8_000, 60_000)
    await run('mount', ['-o', 'remount,size=4g', contentStore.folder])
    returned()
  },
  cleanUp: async ({ contentStore }) => {
    await run('umount', ['--lazy', contentStore.folder])
  },
}

export const targetRows: Row[] = [
  hanging,
  resetting,
  late,
  slow,
  answerLostImmutable,
  dnsFailing,
  mountGone,
  contentsAway,
  contentsSilent,
  contentsFull,
]
