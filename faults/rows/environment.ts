// Faults of the machine, and of those who send.
import { execFile } from 'node:child_process'
import { readdirSync, existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Installation } from '../installation.ts'
import { bytesOf, type Sent } from '../load.ts'
import type { Row } from '../run-row.ts'

const run = promisify(execFile)

const findFaketime = (): string | undefined => {
  const libraries = '/usr/lib'
  if (!existsSync(libraries)) return undefined
  return readdirSync(libraries)
    .map((name) => join(libraries, name, 'faketime', 'libfaketime.so.1'))
    .find(existsSync)
}

/** Returns the library that changes the time of a process, from Debian's package, which is installed if this process may do so. */
const installFaketime = async (): Promise<string | undefined> => {
  if (!findFaketime() && process.getuid?.() === 0) {
    const options = ['-o', 'DPkg::Lock::Timeout=120', 'install', '-y', '--no-install-recommends', 'libfaketime']
    await run('apt-get', options, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }).catch(() => {})
  }
  return findFaketime()
}

const clockFile = ({ workDir }: Installation) => join(workDir, 'clock')

const clockJumps: Row = {
  name: 'clock-jumps',
  longOnly: true,
  fault:
    'The clock of every process of the relay jumps an hour ahead, an hour back behind the true time, and to the true time (libfaketime)',
  cannotRun: async (installation) => {
    await writeFile(clockFile(installation), '+0')
    return (await installFaketime()) ? undefined : 'libfaketime was not found'
  },
  variables: (installation) => ({
    LD_PRELOAD: findFaketime()!,
    FAKETIME_TIMESTAMP_FILE: clockFile(installation),
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }),
  run: async ({ installation, returned, hold }) => {
    for (const offset of ['+3600', '-3600', '+0']) {
      await writeFile(clockFile(installation), offset)
      if (offset !== '+0') await hold(4_000, 30_000)
    }
    returned()
  },
}

const slowSockets = 500

const manySlowSockets: Row = {
  name: 'slow-sockets',
  fault: `${slowSockets} connections from one other address send a byte of a create each second for 10 s (long form: 60 s), and are closed`,
  acceptsAlways: true,
  run: async ({ installation, workspace, load, returned, hold, note }) => {
    const sockets: Socket[] = []
    for (let index = 0; index < slowSockets; index += 1) {
      const { port } = new URL(installation.baseUrls[index % installation.baseUrls.length]!)
      const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: '127.0.0.2' })
      socket.on('error', () => {})
      socket.write(`PUT ${workspace.path}?create&pVersion=0045&contRep=Z1&docId=SLOW${index}&compId=data HTTP/1.1\r\n`)
      sockets.push(socket)
    }
    const timer = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write('x')
    }, 1_000)
    const before = load.sent.length
    await hold(10_000, 60_000)
    clearInterval(timer)
    const during = load.sent.slice(before).map(({ durationMs }) => durationMs)
    const closed = sockets.filter(({ readyState }) => readyState === 'closed').length
    for (const socket of sockets) socket.destroy()
    returned()
    note(
      `${closed} of ${slowSockets} slow connections were closed by the relay; the slowest other create took ${Math.round(Math.max(0, ...during))} ms`,
    )
  },
}

const rounds = 10
const senders = 4

const sameDocument: Row = {
  name: 'same-document-at-once',
  fault: `${senders} clients create the same document at once, with different contents, at both API processes, ${rounds} times. One may win`,
  run: async ({ load, returned, note }) => {
    const winners: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      const docId = load.newDocId()
      const answers = await Promise.all(
        Array.from({ length: senders }, (_, index) =>
          load.create({ docId, body: bytesOf(`${docId} ${index}`, 10_000 + index), signed: false, apiIndex: index }),
        ),
      )
      winners.push(answers.filter(({ outcome }: Sent) => outcome === 'acknowledged').length)
    }
    returned()
    if (winners.some((count) => count !== 1)) throw new Error(`Creates that won, by round: ${winners.join(', ')}`)
    note(`in each of ${rounds} rounds, exactly one of ${senders} creates was acknowledged`)
  },
}

export const environmentRows: Row[] = [clockJumps, manySlowSockets, sameDocument]
