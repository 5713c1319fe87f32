import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { UserError } from '../../src/base/errors.ts'
import { explainWrite, lockDataDir } from '../../src/programs/data-dir-lock.ts'
import { readOrCreateSecretKey, readReady, removeReady, writeReady } from '../../src/programs/data-dir.ts'
import { identifyProcess, stopOrphanedProcess, writePidFile } from '../../src/programs/orphaned-processes.ts'
import { stablePort } from '../../src/programs/ports.ts'
import { share } from '../support/share.ts'
import { makeDirectory } from './support.ts'

const { path: parent } = share(await makeDirectory())
await mkdir(parent)
const makeDataDir = () => mkdtemp(join(parent, 'data dir '))

const endedPid = async (): Promise<number> => {
  const child = spawn('true', { stdio: 'ignore' })
  await once(child, 'exit')
  return child.pid!
}

const ready = (pid: number) => ({
  base_url: 'http://127.0.0.1:8080',
  temporal_ui_url: 'http://127.0.0.1:8233',
  variables: { DATABASE_URL: 'postgres://relay:secret@127.0.0.1:5432/relay', TEMPORAL_ADDRESS: '127.0.0.1:7233' },
  pid,
})

describe('ready.json', () => {
  test('holds the addresses of the running server and is readable only by its user', async () => {
    const dataDir = await makeDataDir()
    await writeReady(dataDir, ready(process.pid))
    expect(readReady(dataDir)).toEqual(ready(process.pid))
    expect((await stat(join(dataDir, 'ready.json'))).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDir)).toEqual(['ready.json'])
  })

  test('is ignored if its server has died or the file is incomplete', async () => {
    const dataDir = await makeDataDir()
    expect(readReady(dataDir)).toBeUndefined()
    await writeReady(dataDir, ready(await endedPid()))
    expect(readReady(dataDir)).toBeUndefined()
    await writeFile(join(dataDir, 'ready.json'), '{"base_url":')
    expect(readReady(dataDir)).toBeUndefined()
  })

  test('can be removed twice', async () => {
    const dataDir = await makeDataDir()
    await writeReady(dataDir, ready(process.pid))
    await removeReady(dataDir)
    await removeReady(dataDir)
    expect(await readdir(dataDir)).toEqual([])
  })
})

describe('the sealing key of a data directory', () => {
  test('is generated once, and readable only by its user', async () => {
    const dataDir = await makeDataDir()
    const first = readOrCreateSecretKey(dataDir)
    expect(first).toMatch(/^local:[A-Za-z0-9+/]{43}=$/)
    expect(readOrCreateSecretKey(dataDir)).toBe(first)
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600)
  })
})

describe('the lock on the data directory', () => {
  test('creates the directory, in which only its user can read', async () => {
    const dataDir = await makeDataDir()
    const created = join(dataDir, 'new')
    const lock = await lockDataDir(created)
    expect((await stat(created)).mode & 0o777).toBe(0o700)
    await lock.release()
  })

  test('excludes a second holder until it is released', async () => {
    const dataDir = await makeDataDir()
    const first = await lockDataDir(dataDir)
    await expect(lockDataDir(dataDir)).rejects.toThrow(UserError)
    await first.release()
    const second = await lockDataDir(dataDir)
    await second.release()
    expect(await readdir(dataDir)).toEqual([])
  })

  test('is taken over if its process has died or another process now has its process id', async () => {
    const dataDir = await makeDataDir()
    const dead = { pid: await endedPid(), command: 'node ', startedAt: '1' }
    const other = { pid: process.pid, command: 'node ', startedAt: '1' }
    for (const content of [JSON.stringify(dead), JSON.stringify(other), 'no JSON']) {
      await writeFile(join(dataDir, 'server.lock'), content)
      const lock = await lockDataDir(dataDir)
      await expect(lockDataDir(dataDir)).rejects.toThrow(`process ${process.pid}`)
      await lock.release()
    }
  })

  test('is acquired by exactly one of 20 concurrent callers, even if a stale lock exists', async () => {
    const dataDir = await makeDataDir()
    await writeFile(join(dataDir, 'server.lock'), 'stale')
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataDir(dataDir)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('fails with a UserError if the directory cannot be created', async () => {
    const dataDir = await makeDataDir()
    await writeFile(join(dataDir, 'file'), '')
    await expect(lockDataDir(join(dataDir, 'file', 'data'))).rejects.toThrow(
      /^Cannot write to .*: .* Set RELAY_DATA_DIR to another directory\.$/,
    )
  })
})

test('a file that cannot be written is explained by its directory, and nothing else is', async () => {
  const dataDir = await makeDataDir()
  const failureOf = (path: string) => writeFile(path, 'x').catch((thrown: unknown) => thrown)
  // Linux has a device that is full.
  const full = process.platform === 'linux' ? await failureOf('/dev/full') : await failureOf(join(dataDir, 'none', 'file'))
  expect(explainWrite(dataDir, { ...(full as object), message: 'not an error' })).toBeUndefined()
  delete (full as NodeJS.ErrnoException).path
  expect(explainWrite(dataDir, full)).toMatchObject({
    message: expect.stringMatching(new RegExp(`^Cannot write to ${dataDir}: EN.*\\. Set RELAY_DATA_DIR to another directory\\.$`)),
  })
  expect(explainWrite(dataDir, await failureOf(join(parent, 'none', 'file')))).toBeUndefined()
})

describe('a stored port', () => {
  test('is kept across calls and replaced if it is in use', async () => {
    const dataDir = await makeDataDir()
    const file = join(dataDir, 'a.port')
    const port = await stablePort(file)
    expect(await stablePort(file)).toBe(port)

    const otherServer = createServer().listen(port, '127.0.0.1')
    await once(otherServer, 'listening')
    const another = await stablePort(file)
    expect(another).not.toBe(port)
    otherServer.close()
    expect(await stablePort(file)).toBe(another)
  })

  test('is not written again: on a full disk, the file would be empty, and a server that is started again would have another address', async () => {
    const file = join(await makeDataDir(), 'a.port')
    const port = await stablePort(file)
    const { mtimeNs } = await stat(file, { bigint: true })
    await pause(20)
    expect(await stablePort(file)).toBe(port)
    expect((await stat(file, { bigint: true })).mtimeNs).toBe(mtimeNs)
  })
})

describe('an orphaned process', () => {
  test('is stopped only if its command line contains the marker', async () => {
    const child = spawn('sleep', ['61.5'], { stdio: 'ignore' })
    await once(child, 'spawn')
    const pid = child.pid!
    expect(await stopOrphanedProcess({ pid, marker: 'sleep 62', timeoutMs: 1_000 })).toBe(false)
    expect(await identifyProcess(pid)).toMatchObject({ command: expect.stringContaining('sleep 61.5') })
    expect(await stopOrphanedProcess({ pid, marker: 'sleep 61.5', timeoutMs: 5_000 })).toBe(true)
    expect(await identifyProcess(pid)).toBeUndefined()
  })

  test('is none if its process id cannot be written: the child is killed', async () => {
    const child = spawn('sleep', ['61.5'], { stdio: 'ignore', detached: true })
    const exited = once(child, 'exit')
    await expect(writePidFile(join(await makeDataDir(), 'none', 'pid'), child)).rejects.toThrow('ENOENT')
    expect(await exited).toEqual([null, 'SIGKILL'])
  })

  test('is killed if it ignores SIGINT', async () => {
    const child = spawn('sh', ['-c', 'trap "" INT; echo ready; while :; do sleep 0.1; done'], { stdio: ['ignore', 'pipe', 'ignore'] })
    await once(child.stdout, 'data')
    expect(await stopOrphanedProcess({ pid: child.pid!, marker: 'echo ready', timeoutMs: 500 })).toBe(true)
  })
})
