import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { findFreePort } from '../src/programs/ports.ts'
import { startServer } from '../test/support/server-program.ts'

/** Counters of HAProxy for all requests so far. */
export interface ProxyCounters {
  requests: number
  /** Answers of status 500 and above, from the relay or from HAProxy itself. */
  serverErrors: number
  /** Requests that were sent to another process because the first one did not accept the connection. */
  redispatches: number
  /** Answers that broke off. */
  brokenAnswers: number
}

export interface Haproxy {
  url: string
  counters(): Promise<ProxyCounters>
  /** Returns true if requests are sent to the process with this index. */
  isUp(index: number): Promise<boolean>
  stop(): Promise<void>
}

const configuration = new URL('../deploy/haproxy/haproxy.cfg', import.meta.url)

const replaceOnce = (whole: string, from: string, to: string): string => {
  if (whole.split(from).length !== 2) throw new Error(`${from} is not once in haproxy.cfg`)
  return whole.replace(from, to)
}

/** Starts HAProxy with the configuration in deploy/haproxy and other addresses. @param ports of the three API processes */
export const startHaproxy = async (program: string, folder: string, ports: number[]): Promise<Haproxy> => {
  const port = await findFreePort()
  const statistics = join(folder, 'haproxy.sock')
  const replacements: [from: string, to: string][] = [
    ['    bind :8080\n', `    bind 127.0.0.1:${port}\n`],
    ['global\n', `global\n    stats socket ${statistics}\n`],
    ...ports.map((apiPort, index): [string, string] => [`10.0.0.1${index + 1}:8080`, `127.0.0.1:${apiPort}`]),
  ]
  const file = join(folder, 'haproxy.cfg')
  const initial = await readFile(configuration, 'utf8')
  await writeFile(
    file,
    replacements.reduce((all, [from, to]) => replaceOnce(all, from, to), initial),
  )
  const { stop } = await startServer(program, ['-db', '-f', file], { name: 'HAProxy', port, logFile: join(folder, 'haproxy.log') })

  const readRows = async (): Promise<Record<string, string>[]> => {
    const socket = connect(statistics)
    socket.write('show stat\n')
    const [head, ...lines] = (await text(socket)).replace('# ', '').trim().split('\n')
    const names = head!.split(',')
    return lines.map((line) => Object.fromEntries(line.split(',').map((value, index) => [names[index]!, value])))
  }
  return {
    url: `http://127.0.0.1:${port}`,
    counters: async () => {
      const rows = await readRows()
      const frontend = rows.find(({ svname }) => svname === 'FRONTEND')!
      const backend = rows.find(({ svname }) => svname === 'BACKEND')!
      return {
        requests: Number(frontend['req_tot']),
        serverErrors: Number(frontend['hrsp_5xx']),
        redispatches: Number(backend['wredis']),
        brokenAnswers: Number(backend['eresp']) + Number(backend['srv_abrt']),
      }
    },
    isUp: async (index) => (await readRows()).find(({ svname }) => svname === `api${index + 1}`)!['status'] === 'UP',
    stop,
  }
}
