import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import {
  chmod,
  link,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
  type FileHandle,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { readConfig } from '../../../src/config/config.ts'
import type { Payload } from '../../../src/connectors/connector.ts'
import { fileSystemError } from '../../../src/connectors/directory/errors.ts'
import { createDirectory } from '../../../src/connectors/directory/index.ts'
import { createConnectors } from '../../../src/connectors/index.ts'
import { partFileName } from '../../../src/connectors/shared/target-path.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { mountsMissing, runWithMounts } from '../../support/mounts.ts'
import { contextOf, failing, failure, largePayload, MiB, payloadOf } from '../payloads.ts'
import { createArchive } from './rig.ts'

const run = promisify(execFile)
const outbound = createOutboundGuard({ allowedCidrs: [] })
let scene: Awaited<ReturnType<typeof createArchive>>
let outside: string
beforeEach(async () => {
  scene = await createArchive()
  outside = await realpath(await mkdtemp(join(tmpdir(), 'relay-outside-')))
})
afterEach(async () => {
  await scene.remove()
  await rm(outside, { recursive: true })
})
afterAll(() => outbound.close())

const deliver = (payload: Payload, target = scene.target(), overrides: Parameters<typeof contextOf>[1] = {}) =>
  scene.connector.deliver(payload, target, contextOf(outbound, overrides))
const small = (path = 'R1/data') => payloadOf(Buffer.from('content'), { path })
const filesBelow = async (folder: string) =>
  (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => !entry.isDirectory()).map(({ name }) => name)

/** Runs `act` while flushing fails in this process. @param codeOf returns the error, or undefined to flush */
const withFailingSync = async <Result>(codeOf: (isFolder: boolean) => string | undefined, act: () => Promise<Result>): Promise<Result> => {
  const folder = await open(scene.archive)
  const calls = Object.getPrototypeOf(folder) as Pick<FileHandle, 'sync'>
  await folder.close()
  const { sync } = calls
  calls.sync = async function (this: FileHandle) {
    const code = codeOf((await this.stat()).isDirectory())
    if (code !== undefined) throw Object.assign(new Error(`${code}: it failed, fsync`), { code })
    await sync.call(this)
  }
  try {
    return await act()
  } finally {
    calls.sync = sync
  }
}

/** Runs `act` as an account that the permissions of files hold for. */
const asOrdinaryAccount = async <Result>(act: () => Promise<Result>): Promise<Result> => {
  if (process.getuid!() !== 0) return act()
  process.seteuid!(65_534)
  try {
    return await act()
  } finally {
    process.seteuid!(0)
  }
}

describe('the allowed directories', () => {
  test.each([
    ['/srv/archive', true],
    ['/srv/archive/', true],
    ['/srv/archive/a/b', true],
    ['/srv', false],
    ['/srv/archive-2', false],
    ['/srv/archive/../other', false],
    ['/srv/archive//a', false],
    ['/srv/archive/./a', false],
    ['/', false],
    ['srv/archive', false],
    ['', false],
    ['/srv/archive/a\nb', false],
  ])('with the root /srv/archive, the path %j is valid: %s', (path, isValid) => {
    const connector = createConnectors({ RELAY_DIRECTORY_ROOTS: [{ value: '/srv/archive' }] }).find('directory')!
    const issues = [
      ...(connector.config.safeParse({ path }).error?.issues ?? []),
      ...connector.notAllowed!({ config: { path } }, 'acme/invoices'),
    ]
    expect(issues.length === 0).toBe(isValid)
  })

  test('without roots, every path is refused with the reason', () => {
    const connector = createConnectors().find('directory')!
    expect(connector.notAllowed!({ config: { path: '/srv/archive' }, credentials: {} }, 'acme/invoices')).toEqual([
      { path: 'config.path', message: expect.stringContaining('no directories (RELAY_DIRECTORY_ROOTS)') as string },
    ])
  })

  test('of another workspace are refused, in the destination and in an attempt', async () => {
    const connector = createDirectory([{ workspace: 'acme/first', value: scene.root }])
    const deliverFor = (workspace: string) => connector.deliver(small(), scene.target(), contextOf(outbound, { workspace }))
    expect(await failure(deliverFor('acme/second'))).toMatchObject({ code: 'directory_not_allowed', permanent: true })
    expect(await filesBelow(scene.root)).toEqual([])
    await deliverFor('acme/first')
    expect(await filesBelow(scene.root)).toHaveLength(1)
  })

  test('come from RELAY_DIRECTORY_ROOTS, which accepts absolute paths only', () => {
    expect(readConfig({}).RELAY_DIRECTORY_ROOTS).toEqual([])
    expect(readConfig({ RELAY_DIRECTORY_ROOTS: '/srv/a, /srv/b' }).RELAY_DIRECTORY_ROOTS).toEqual([
      { value: '/srv/a' },
      { value: '/srv/b' },
    ])
    expect(() => readConfig({ RELAY_DIRECTORY_ROOTS: '/srv/a,srv/b' })).toThrow('RELAY_DIRECTORY_ROOTS')
  })

  test('are checked again for each delivery', async () => {
    const target = scene.target()
    const strict = createDirectory([{ value: outside }])
    expect(await failure(strict.deliver(small(), target, contextOf(outbound)))).toMatchObject({
      code: 'directory_not_allowed',
      permanent: true,
      message: expect.stringContaining('RELAY_DIRECTORY_ROOTS') as string,
    })
    expect(await failure(strict.probe(target, contextOf(outbound)))).toMatchObject({ code: 'directory_not_allowed' })
    expect(await filesBelow(scene.root)).toEqual([])
  })

  test('may be a symbolic link, and a destination may be one that stays inside', async () => {
    const alias = join(outside, 'alias')
    await symlink(scene.root, alias)
    await symlink(scene.archive, join(scene.root, 'same'))
    const connector = createDirectory([{ value: alias }])
    const target = { config: connector.config.parse({ path: join(alias, 'same') }), credentials: {} }
    await connector.deliver(small(), target, contextOf(outbound))
    expect(await readFile(join(scene.archive, 'R1/data'), 'utf8')).toBe('content')
  })

  test('that do not exist are retried, since they might not be mounted', async () => {
    const target = scene.target()
    const moved = `${scene.root}-moved`
    await rename(scene.root, moved)
    try {
      expect(await failure(deliver(small(), target))).toMatchObject({
        code: 'file_system_failure',
        permanent: false,
        message: expect.stringContaining('mounted') as string,
      })
    } finally {
      await rename(moved, scene.root)
    }
  })
})

// Only root may mount, and not in every container. The title then says why nothing was mounted.
const describeWithMounts = mountsMissing === undefined ? describe : describe.skip

describeWithMounts(`a mount (${mountsMissing ?? 'real ones'})`, () => {
  test('at the file itself keeps it from being replaced: the same content is delivered, and no other one', async () => {
    const refused = expect.stringMatching(
      /EBUSY.*; another document, or an earlier content of this one, is stored under its name$/,
    ) as string
    expect(await runWithMounts(new URL('./deliver-to-kept-file.ts', import.meta.url), scene.root)).toEqual({
      first: 'delivered',
      again: 'delivered',
      appended: refused,
      changed: refused,
      isUnchanged: true,
      entries: ['data.bin', 'data.bin.meta.json'],
    })
  })

  test('that is gone is an error, and nothing is written to the disk below it', async () => {
    const told = await runWithMounts(new URL('./deliver-to-mounts.ts', import.meta.url), scene.root)
    const refused = ['file_system_failure, retried', 'file_system_failure, retried']
    const isGuarded = (pinned: string) => ({ pinned, before: ['success', 'success'], without: refused, onTheDisk: [], after: ['success'] })
    expect(told).toEqual({
      'above the root, stored': isGuarded('mnt'),
      'above the root, seen': isGuarded('mnt'),
      'at the root, stored': isGuarded('mnt'),
      'at the root, seen': isGuarded('mnt'),
      'between root and folder, stored': isGuarded('mnt/nas'),
      'between root and folder, seen': isGuarded('mnt/nas'),
      'between root and folder, which is nowhere else, stored': isGuarded('mnt/nas'),
      'between root and folder, which is nowhere else, seen': isGuarded('mnt/nas'),
      'at the folder, stored': isGuarded('mnt/nas'),
      'at the folder, seen': isGuarded('mnt/nas'),
      'behind a symbolic link, stored': isGuarded('mnt/nas'),
      'behind a symbolic link, seen': isGuarded('mnt/nas'),
    })
  })
})

describe('a mount point', () => {
  const at = (mountPoint: string) => {
    const { config, credentials } = scene.target()
    return { config: scene.connector.config.parse({ ...config, mount_point: mountPoint }), credentials }
  }

  test('that is none, or does not exist, is an error that passes when it is mounted', async () => {
    for (const mountPoint of [scene.archive, join(scene.root, 'not-there')]) {
      for (const attempt of [deliver(small(), at(mountPoint)), scene.connector.probe(at(mountPoint), contextOf(outbound))]) {
        const message = expect.stringContaining(`no file system is mounted at ${mountPoint}`) as string
        expect(await failure(attempt)).toMatchObject({ code: 'file_system_failure', permanent: false, message })
      }
    }
    expect(await filesBelow(scene.root)).toEqual([])
  })

  test('of / stands for any file system', async () => {
    await deliver(small(), at('/'))
    expect(await filesBelow(scene.archive)).toEqual(['data'])
  })

  test('that is not above the folder is an error that says what to correct', async () => {
    const message = expect.stringContaining(`${scene.archive} is not below /proc; set mount_point`) as string
    expect(await failure(deliver(small(), at('/proc')))).toMatchObject({ code: 'config_invalid', permanent: true, message })
  })

  test('that nobody may enter without its mount is an error that passes when it is mounted', async () => {
    await chmod(scene.root, 0o755)
    await chmod(scene.archive, 0o000)
    try {
      for (const path of [scene.archive, join(scene.archive, 'in')]) {
        const target = { ...scene.target(path), config: { ...scene.target(path).config, mount_point: scene.archive } }
        const error = await asOrdinaryAccount(() => failure(deliver(small(), target)))
        expect(error).toMatchObject({ code: 'file_system_failure', permanent: false })
        expect(error.message).toContain(`no file system is mounted at ${scene.archive}`)
      }
    } finally {
      await chmod(scene.archive, 0o700)
    }
  })

  test.each(['mnt', '/mnt/', '/mnt/../srv', '/mnt//a', ''])('%j is not valid', (mountPoint) => {
    expect(scene.connector.config.safeParse({ path: scene.archive, mount_point: mountPoint }).success).toBe(false)
  })
})

describe('a symbolic link that leads outside', () => {
  test('is refused as the folder of the destination', async () => {
    await symlink(outside, join(scene.root, 'alias'))
    const target = scene.target(join(scene.root, 'alias'))
    for (const attempt of [deliver(small(), target), scene.connector.probe(target, contextOf(outbound))]) {
      expect(await failure(attempt)).toMatchObject({ code: 'directory_not_allowed', permanent: true })
    }
    expect(await readdir(outside)).toEqual([])
  })

  test('is refused as a folder of the document, before a folder is created in it', async () => {
    await symlink(outside, join(scene.archive, 'R1'))
    expect(await failure(deliver(small('R1/deep/data')))).toMatchObject({ code: 'directory_not_allowed', permanent: true })
    expect(await readdir(outside)).toEqual([])
  })

  test('is replaced, and not followed, as the name of the document', async () => {
    await writeFile(join(outside, 'victim'), 'unchanged')
    await symlink(join(outside, 'victim'), join(scene.archive, 'data'))
    await deliver(small('data'))
    expect(await readFile(join(scene.archive, 'data'), 'utf8')).toBe('content')
    expect(await readFile(join(outside, 'victim'), 'utf8')).toBe('unchanged')
  })

  test('is not followed as the name of the temporary file', async () => {
    const payload = small('data')
    await writeFile(join(outside, 'victim'), 'unchanged')
    await symlink(join(outside, 'victim'), join(scene.archive, partFileName('data', payload.deliveryId)))
    await failure(deliver(payload))
    expect(await readFile(join(outside, 'victim'), 'utf8')).toBe('unchanged')
    // The failed attempt has removed the link, so the next one succeeds.
    await deliver(payload)
    expect(await readFile(join(scene.archive, 'data'), 'utf8')).toBe('content')
  })
})

describe('a file', () => {
  test.each(['../outside', 'a/../../outside', '/etc/outside', 'a//b', 'a/./b', '', 'a\0b', 'a\nb'])(
    'with the path %j is refused',
    async (path) => {
      expect(await failure(deliver(small(path)))).toMatchObject({ code: 'path_refused', permanent: true })
    },
  )

  test('replaces an earlier one at its path, with the permissions of a new file', async () => {
    const path = 'R1/D1/data'
    await deliver(payloadOf(Buffer.from('earlier and longer'), { path }))
    const result = await deliver(small(path))
    expect(result).toEqual({ path: join(scene.archive, path), bytesSent: 7 })
    expect(await readFile(result.path, 'utf8')).toBe('content')
    expect((await stat(result.path)).mode & 0o777).toBe(0o666 & ~process.umask())
    expect(await filesBelow(scene.archive)).toEqual(['data'])
  })

  test('overwrites the temporary file of an earlier attempt', async () => {
    const payload = small('again')
    await writeFile(join(scene.archive, partFileName('again', payload.deliveryId)), 'much longer than the content')
    await deliver(payload)
    expect(await readFile(join(scene.archive, 'again'), 'utf8')).toBe('content')
    expect(await filesBelow(scene.archive)).toEqual(['again'])
  })

  test('that fails leaves an earlier one at its path unchanged', async () => {
    await deliver(small('data'))
    const payload = { ...largePayload(2 * MiB), path: 'data' }
    expect(await failure(deliver(failing(payload, MiB)))).toMatchObject({ code: 'content_unreadable' })
    expect(await readFile(join(scene.archive, 'data'), 'utf8')).toBe('content')
    expect(await filesBelow(scene.archive)).toEqual(['data'])
  })

  test('in place of a folder of the document fails the delivery and stays unchanged', async () => {
    await writeFile(join(scene.archive, 'occupied'), 'unchanged')
    expect(await failure(deliver(small('occupied/data')))).toMatchObject({ code: 'file_system_failure', permanent: false })
    expect(await readFile(join(scene.archive, 'occupied'), 'utf8')).toBe('unchanged')
  })

  test('several files can be delivered to a new folder at the same time', async () => {
    await Promise.all(Array.from({ length: 5 }, (_, index) => deliver(small(`new/deep/${index}`))))
    expect(await filesBelow(scene.archive)).toHaveLength(5)
  })
})

describe('an error of the file system', () => {
  test.each([
    ['EACCES', 'permission_denied', true],
    ['EPERM', 'permission_denied', true],
    ['ENOSPC', 'storage_full', false],
    ['EDQUOT', 'storage_full', false],
    ['ENAMETOOLONG', 'path_too_long', true],
    ['EIO', 'file_system_failure', false],
    ['ESTALE', 'file_system_failure', false],
    ['EROFS', 'file_system_failure', false],
  ])('%s becomes %s, permanent: %s', (systemCode, code, permanent) => {
    const error = fileSystemError(Object.assign(new Error(`${systemCode}: it failed`), { code: systemCode }))
    expect(error).toMatchObject({ code, permanent, message: expect.stringContaining('it failed') as string })
  })

  test('in the middle of a document fails the delivery and leaves nothing', async () => {
    // 1,024 blocks of 1 KiB. A limit for the size of files stands in for a full disk, which a test cannot set up
    // without the superuser.
    const limited = `trap '' XFSZ; ulimit -f 1024; exec "$0" --disable-warning=ExperimentalWarning "$@"`
    const script = new URL('./deliver-two-mib.ts', import.meta.url).pathname
    const { stdout } = await run('bash', ['-c', limited, process.execPath, script, scene.archive])
    expect(JSON.parse(stdout)).toEqual({ code: 'file_system_failure', permanent: false })
    expect(await filesBelow(scene.archive)).toEqual([])
  })

  test('a missing write permission is a permanent failure', async () => {
    // The superuser may write to every folder, and is never refused.
    const isSuperuser = process.getuid?.() === 0
    await chmod(scene.archive, 0o500)
    const outcome = await deliver(small()).then(
      () => 'delivered',
      (thrown: unknown) => (thrown as { code: string; permanent: boolean }).code,
    )
    await chmod(scene.archive, 0o700)
    expect(outcome).toBe(isSuperuser ? 'delivered' : 'permission_denied')
  })

  test.each(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'ENOTTY', 'ENOENT'])(
    '%s from flushing a file or a folder means that the file system cannot flush: the document is delivered',
    async (code) => {
      const result = await withFailingSync(
        () => code,
        () => deliver(small('R1/data')),
      )
      expect(result).toEqual({ path: join(scene.archive, 'R1/data'), bytesSent: 7 })
      expect(await readFile(result.path, 'utf8')).toBe('content')
    },
  )

  test.each(['EIO', 'ENOSPC', 'EDQUOT'])('%s from flushing the file fails the delivery and leaves nothing', async (code) => {
    const error = await withFailingSync(
      (isFolder) => (isFolder ? undefined : code),
      () => failure(deliver(small('R1/data'))),
    )
    expect(error).toMatchObject({ code: code === 'EIO' ? 'file_system_failure' : 'storage_full', permanent: false })
    expect(await filesBelow(scene.archive)).toEqual([])
  })

  test.each(['EPERM', 'EACCES', 'EIO', 'ENOSPC', 'EDQUOT', 'ESTALE', 'EROFS'])(
    '%s from flushing a folder, which has the document, is noted and fails nothing',
    async (code) => {
      const result = await withFailingSync(
        (isFolder) => (isFolder ? code : undefined),
        () => deliver(small('R1/data')),
      )
      expect(result.answer).toEqual({ note: expect.stringContaining(code) as string })
      expect(await readFile(result.path, 'utf8')).toBe('content')
      expect(await filesBelow(scene.archive)).toEqual(['data'])
    },
  )

  test('a folder in which the account may create files, and which it may not read, gets documents', async () => {
    await chmod(scene.root, 0o755)
    await chmod(scene.archive, 0o333)
    const payload = small('data')
    try {
      const results = await asOrdinaryAccount(async () => {
        return [await deliver(payload), await deliver(payload)]
      })
      expect(results[1]).toMatchObject({ bytesSent: 7, answer: { note: expect.stringContaining('EACCES') as string } })
    } finally {
      await chmod(scene.archive, 0o700)
    }
    expect(await readFile(join(scene.archive, 'data'), 'utf8')).toBe('content')
    expect(await filesBelow(scene.archive)).toEqual(['data'])
  })

  test('a rename that has happened and whose answer is an error is no failure, and one that has not happened is', async () => {
    await deliver(small('data'))
    const payload = payloadOf(Buffer.from('another'), { path: 'data' })
    const partFile = join(scene.archive, partFileName('data', payload.deliveryId))
    // Of the file server: it has renamed the file, and the client repeats the call.
    const moves = async function* () {
      yield Buffer.from('another')
      await rename(partFile, join(scene.archive, 'data'))
    }
    await deliver({ ...payload, open: () => Readable.from(moves(), { objectMode: false }) })
    expect(await readFile(join(scene.archive, 'data'), 'utf8')).toBe('another')
    const removes = async function* () {
      yield Buffer.from('another')
      await rm(partFile)
    }
    const lost = deliver({ ...payload, open: () => Readable.from(removes(), { objectMode: false }) })
    expect(await failure(lost)).toMatchObject({ code: 'file_system_failure', permanent: false })
  })

  test('a file system that does not respond times out', async () => {
    // Opening a named pipe without a reader blocks, as a call to a network file system that hangs does.
    const payload = small('data')
    const pipe = join(scene.archive, partFileName('data', payload.deliveryId))
    await run('mkfifo', [pipe])
    await link(pipe, join(outside, 'pipe'))
    expect(await failure(deliver(payload, scene.target(), { idleTimeoutMs: 200 }))).toMatchObject({ code: 'timeout', permanent: false })
    expect(await filesBelow(scene.archive)).toEqual([])
    // Ends the blocked call.
    const reader = await open(join(outside, 'pipe'), constants.O_RDONLY | constants.O_NONBLOCK)
    await reader.close()
  })
})
