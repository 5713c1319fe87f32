import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'

export interface Pgbouncer extends AsyncDisposable {
  /** DATABASE_URL that leads through the pooler. */
  url: string
  stop(): Promise<void>
}

// It refuses to run as root.
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** Starts a PgBouncer in front of a database. */
export const startPgbouncer = async (databaseUrl: string, settings: Record<string, string>): Promise<Pgbouncer> => {
  const { hostname, port: serverPort, username, password, pathname } = new URL(databaseUrl)
  const name = pathname.slice(1)
  const port = await findFreePort()
  const all = { listen_addr: '127.0.0.1', listen_port: String(port), unix_socket_dir: '', auth_type: 'any', ...settings }
  const lines = [
    '[databases]',
    `${name} = host=${hostname} port=${serverPort} dbname=${name} user=${username} password=${decodeURIComponent(password)}`,
    '[pgbouncer]',
    ...Object.entries(all).map(([setting, value]) => `${setting} = ${value}`),
  ]
  const folder = await mkdtemp(join(tmpdir(), 'relay-pgbouncer-'))
  const removeFolder = () => rm(folder, { recursive: true })
  try {
    const file = join(folder, 'pgbouncer.ini')
    await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 })
    if (account) {
      await chmod(folder, 0o755)
      await chown(file, account.uid, account.gid)
    }
    const logFile = join(folder, 'pgbouncer.log')
    const server = await startServer(process.env.TEST_PGBOUNCER_BIN!, [file], { name: 'PgBouncer', port, logFile, account })
    const url = new URL(databaseUrl)
    url.port = String(port)
    const stop = async () => {
      await server.stop()
      await removeFolder()
    }
    return {
      url: url.href,
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (thrown) {
    await removeFolder()
    throw thrown
  }
}
