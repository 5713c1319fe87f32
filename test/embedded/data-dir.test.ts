import { once } from 'node:events'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { identify, stopLeftover } from '../../src/embedded/leftovers.ts'
import { lockDataDir } from '../../src/embedded/lock.ts'
import { stablePort } from '../../src/embedded/ports.ts'
import { readReady, removeReady, writeReady } from '../../src/embedded/ready.ts'
import { UserError } from '../../src/errors.ts'
import { makeDirectory } from './support.ts'

let dataDir: string
let remove: () => Promise<void>

beforeEach(async () => {
  const made = await makeDirectory()
  dataDir = made.path
  remove = () => made.remove()
  await mkdir(dataDir, { recursive: true })
})
afterEach(() => remove())

const endedPid = async (): Promise<number> => {
  const child = spawn('true', { stdio: 'ignore' })
  await once(child, 'exit')
  return child.pid!
}

const ready = (pid: number) => ({
  base_url: 'http://127.0.0.1:8080',
  temporal_address: '127.0.0.1:7233',
  temporal_ui_url: 'http://127.0.0.1:8233',
  database_url: 'postgres://relay:secret@127.0.0.1:5432/relay',
  pid,
})

describe('ready.json', () => {
  test('tells others how to reach a running server, and only this user may read it', async () => {
    await writeReady(dataDir, ready(process.pid))
    expect(readReady(dataDir)).toEqual(ready(process.pid))
    expect((await stat(join(dataDir, 'ready.json'))).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDir)).toEqual(['ready.json'])
  })

  test('counts for nothing once its server has died, or where it is not whole', async () => {
    expect(readReady(dataDir)).toBeUndefined()
    await writeReady(dataDir, ready(await endedPid()))
    expect(readReady(dataDir)).toBeUndefined()
    await writeFile(join(dataDir, 'ready.json'), '{"base_url":')
    expect(readReady(dataDir)).toBeUndefined()
  })

  test('is gone after removal, which may come twice', async () => {
    await writeReady(dataDir, ready(process.pid))
    await removeReady(dataDir)
    await removeReady(dataDir)
    expect(await readdir(dataDir)).toEqual([])
  })
})

describe('the lock', () => {
  test('keeps a second holder out until it is released', async () => {
    const first = await lockDataDir(dataDir)
    await expect(lockDataDir(dataDir)).rejects.toThrow(UserError)
    await first.release()
    const second = await lockDataDir(dataDir)
    await second.release()
    expect(await readdir(dataDir)).toEqual([])
  })

  test('of a process that has died, or whose number another one has now, is taken over', async () => {
    const dead = { pid: await endedPid(), command: 'node ', startedAt: '1' }
    const other = { pid: process.pid, command: 'node ', startedAt: '1' }
    for (const content of [JSON.stringify(dead), JSON.stringify(other), 'no JSON']) {
      await writeFile(join(dataDir, 'server.lock'), content)
      const lock = await lockDataDir(dataDir)
      await expect(lockDataDir(dataDir)).rejects.toThrow(`process ${process.pid}`)
      await lock.release()
    }
  })

  test('goes to one of many who come at once, also past a stale one', async () => {
    await writeFile(join(dataDir, 'server.lock'), 'stale')
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataDir(dataDir)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('on a directory that cannot be made is refused in a sentence', async () => {
    await writeFile(join(dataDir, 'file'), '')
    await expect(lockDataDir(join(dataDir, 'file', 'data'))).rejects.toThrow(/cannot be written: .* Choose another RELAY_DATA_DIR\.$/)
  })
})

describe('a remembered port', () => {
  test('stays the same, and gives way where it is taken', async () => {
    const file = join(dataDir, 'a.port')
    const port = await stablePort(file)
    expect(await stablePort(file)).toBe(port)

    const squatter = createServer().listen(port, '127.0.0.1')
    await once(squatter, 'listening')
    const another = await stablePort(file)
    expect(another).not.toBe(port)
    squatter.close()
    expect(await stablePort(file)).toBe(another)
  })
})

describe('what a crash left running', () => {
  test('is stopped only where its command line says that it is ours', async () => {
    const child = spawn('sleep', ['61.5'], { stdio: 'ignore' })
    await once(child, 'spawn')
    const pid = child.pid!
    expect(await stopLeftover({ pid, marker: 'sleep 62', timeoutMs: 1_000 })).toBe(false)
    expect(await identify(pid)).toMatchObject({ command: expect.stringContaining('sleep 61.5') })
    expect(await stopLeftover({ pid, marker: 'sleep 61.5', timeoutMs: 5_000 })).toBe(true)
    expect(await identify(pid)).toBeUndefined()
  })

  test('is killed where it does not heed', async () => {
    const child = spawn('sh', ['-c', 'trap "" INT; echo ready; while :; do sleep 0.1; done'], { stdio: ['ignore', 'pipe', 'ignore'] })
    await once(child.stdout, 'data')
    expect(await stopLeftover({ pid: child.pid!, marker: 'echo ready', timeoutMs: 500 })).toBe(true)
  })
})
