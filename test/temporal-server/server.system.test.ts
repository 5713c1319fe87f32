import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { identifyProcess, readPidFile } from '../../src/programs/orphaned-processes.ts'
import { startTemporalServer } from '../../src/temporal-server/server.ts'
import { configOf } from '../dev/support.ts'
import { disposable } from '../support/disposable.ts'
import { createFolder } from '../support/folder.ts'
import { takePort } from '../support/take-port.ts'
import { until } from '../support/until.ts'

const program = fileURLToPath(new URL('misbehaving-server.mjs', import.meta.url))
type Behaviour = 'serves' | 'silent' | 'refuses' | 'exits'
const health = { callMaxMs: 300, pauseMs: 50, silentMaxMs: 1_000, starvedMaxMs: 5_000 }

/** Prepares a folder for a stand-in of the Temporal server. */
const prepare = async (behaviour: Behaviour = 'serves') => {
  const parent = await createFolder()
  const folder = join(parent.path, 'temporal')
  const server = join(parent.path, 'temporal-server')
  await mkdir(folder)
  await writeFile(server, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 })
  const behave = (next: Behaviour) => writeFile(join(folder, 'behaviour'), next)
  await behave(behaviour)
  const lines: { level: string; fields: object; text: string }[] = []
  const write = (level: string) => (fields: object, text: string) => void lines.push({ level, fields, text })
  const log = Object.fromEntries(['debug', 'info', 'warn', 'error'].map((level) => [level, write(level)])) as never
  const said: string[] = []
  const { promise: lost, reject: lose } = Promise.withResolvers<never>()
  lost.catch(() => {})
  let forgotten = 0
  const ownership = { lost, forgetMembers: async () => void (forgotten += 1), release: async () => {} }
  const start = async () => {
    const config = configOf({ DATABASE_URL: 'postgres://relay:hidden@127.0.0.1/relay' })
    const started = await startTemporalServer({
      folder,
      config,
      programs: { server },
      ownership,
      log,
      say: (line) => said.push(line),
      health,
    })
    return disposable(started, started.stop)
  }
  const pid = () => readPidFile(join(folder, 'temporal.pid'))
  return { ...parent, folder, behave, lines, said, lose, start, pid, forgotten: () => forgotten }
}

const untilOther = (pid: () => Promise<number | undefined>, former: number | undefined) =>
  until('another process runs', pid, (current) => current !== undefined && current !== former)

test('a server that is killed is started again at its address, and its log is that of the relay', async () => {
  await using scene = await prepare()
  await using server = await scene.start()
  const configFile = join(scene.folder, 'server.json')
  expect((await stat(configFile)).mode & 0o777).toBe(0o600)
  const former = (await scene.pid())!
  expect((await identifyProcess(former))!.command).not.toContain('hidden')
  process.kill(former, 'SIGKILL')
  await untilOther(scene.pid, former)
  await until('its port listens', async () =>
    fetch(`http://${server.address}`).catch((thrown: Error & { cause?: { code?: string } }) => thrown.cause?.code !== 'ECONNREFUSED'),
  )
  expect(scene.forgotten()).toBe(2)
  expect(scene.lines).toContainEqual({
    level: 'error',
    fields: { exit_code: null, signal: 'SIGKILL', restart_in_ms: 1_000 },
    text: 'Temporal has ended by itself and is started again',
  })
  expect(scene.lines).toContainEqual({ level: 'warn', fields: { temporal: { service: 'frontend' } }, text: 'Temporal: started' })
  // A normal start and a restart alarm no operator.
  const starting = scene.lines.filter(({ text }) => text === 'Temporal: service failures')
  expect(starting.map(({ level }) => level)).toEqual(['debug', 'debug'])
  await server.stop()
  // The password of the database does not stay behind.
  expect(await readdir(scene.folder)).not.toContain('server.json')
}, 60_000)

test('a server that has stopped to answer is killed and started again; one that answers with an error is not', async () => {
  await using scene = await prepare()
  await using server = await scene.start()
  const former = await scene.pid()
  await scene.behave('refuses')
  await delay(3_000)
  expect(await scene.pid()).toBe(former)
  await scene.behave('silent')
  await until('it is killed', () => scene.lines.some(({ text }) => text === 'Temporal has stopped to answer and is killed'))
  await scene.behave('serves')
  await untilOther(scene.pid, former)
  await server.stop()
}, 60_000)

test('a start that fails says what the server has said, and leaves nothing behind', async () => {
  await using scene = await prepare('exits')
  await expect(scene.start()).rejects.toThrow('Temporal exited during start. End of its log: unable to start: no database')
  expect(await readdir(scene.folder)).not.toContain('server.json')
}, 60_000)

test('a server that a crashed relay has left running is stopped before another one is started', async () => {
  await using scene = await prepare()
  const configFile = join(scene.folder, 'server.json')
  await writeFile(configFile, JSON.stringify({ services: { frontend: { rpc: { grpcPort: 0 } } } }))
  const orphan = spawn(process.execPath, [program, '--config-file', configFile], { stdio: 'ignore' })
  const ended = once(orphan, 'exit')
  await writeFile(join(scene.folder, 'temporal.pid'), String(orphan.pid))
  await using server = await scene.start()
  await ended
  expect(scene.said).toContain('Stopped a Temporal server that a crashed process had left running.')
  await server.stop()
}, 60_000)

test('a port that another program takes in the meantime ends the server, whose clients could not follow', async () => {
  await using scene = await prepare()
  await using server = await scene.start()
  const former = (await scene.pid())!
  const port = Number(await readFile(join(scene.folder, 'frontend.port'), 'utf8'))
  process.kill(former, 'SIGKILL')
  await using _ = await takePort(port)
  await expect(server.ended).rejects.toThrow(`Another program has taken the port of Temporal (${server.address})`)
  await server.stop()
}, 60_000)

test('Temporal stops when another relay has taken the database', async () => {
  await using scene = await prepare()
  await using server = await scene.start()
  const pid = (await scene.pid())!
  scene.lose(new Error('taken'))
  await expect(server.ended).rejects.toThrow('taken')
  await until('it has ended', async () => (await identifyProcess(pid)) === undefined)
}, 60_000)
