import { chmod, chown, mkdir, readFile, rm } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import type { Account } from '../../src/programs/programs.ts'
import { runSteps, stepsOf, withValues, type Step } from './walk.ts'

const pageUrl = new URL('../../docs/backup.md', import.meta.url)
// PostgreSQL refuses to run as root.
const account: Account | undefined = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined
const timeoutMs = 120_000

/** Returns the commands of docs/backup.md that set its variables, and its other steps. */
const readSteps = async (): Promise<{ exports: string; steps: Step[] }> => {
  const [first, ...steps] = stepsOf(await readFile(pageUrl, 'utf8'))
  return { exports: first!.commands, steps }
}

/** The steps of docs/backup.md. */
export const backupSteps = async (): Promise<Step[]> => (await readSteps()).steps

/** A PostgreSQL of the relay that is backed up and restored as docs/backup.md says. */
export interface BackupCommands {
  /** Folder of the cluster: PGDATA. */
  cluster: string
  /** Folder of the contents: CONTENT_DIR. */
  contentDir: string
  /** Folder of the backup: BACKUP. */
  backup: string
  /** Address of the relay's database: DATABASE_URL. */
  databaseUrl: string
  /** Creates the cluster, starts it, and creates the relay's role and database. @param settings lines of postgresql.conf */
  createCluster(settings?: string[]): Promise<void>
  /** Runs commands as the account of PostgreSQL. */
  asPostgres(commands: string): Promise<string[]>
  /** Runs commands as the account of the relay. */
  asRelay(commands: string): Promise<string[]>
  /** Runs the commands under a heading of the page. @param which index of the block, if not all of them are to be run */
  follow(heading: string, which?: number): Promise<string>
  /** Stops the server without a checkpoint, and removes the cluster. */
  destroyCluster(): Promise<void>
  /** Stops the server, if it runs. */
  stop(): Promise<void>
}

interface Options {
  folder: string
  /** Folder of the programs of PostgreSQL. */
  programs: string
  port: number
  /** Returns the folder of the command `relay`. */
  bin(): string
  /** Returns further variables of the relay. */
  variables(): Record<string, string>
  /** Called for each block before it is run. */
  onBlock(commands: string): void
}

/** Prepares the folders that docs/backup.md needs. */
export const createBackupCommands = async ({ folder, programs, port, bin, variables, onBlock }: Options): Promise<BackupCommands> => {
  const cluster = join(folder, 'postgres', 'main')
  const contentDir = join(folder, 'contents')
  const backup = join(folder, 'backup')
  const databaseUrl = `postgres://relay@127.0.0.1:${port}/relay`
  const page = await readSteps()
  const exports = withValues(page.exports, { BACKUP: backup, PGDATA: cluster, DATABASE_URL: databaseUrl, CONTENT_DIR: contentDir })
  await chmod(folder, 0o755)
  await mkdir(contentDir)
  for (const path of [dirname(cluster), cluster, backup]) {
    await mkdir(path, { mode: 0o700 })
    if (account) await chown(path, account.uid, account.gid)
  }

  const run = async (commands: string, options: Parameters<typeof runSteps>[1]) => (await runSteps([exports, commands], options)).slice(1)
  const asPostgres: BackupCommands['asPostgres'] = (commands) => {
    const environment = {
      PATH: [programs, process.env.PATH].join(delimiter),
      HOME: folder,
      PGHOST: '127.0.0.1',
      PGPORT: String(port),
      PGUSER: 'postgres',
      PGDATABASE: 'postgres',
    }
    return run(commands, { folder, environment, timeoutMs, ...(account && { account }) })
  }
  const asRelay: BackupCommands['asRelay'] = (commands) => {
    const PATH = [bin(), dirname(process.execPath), programs, process.env.PATH].join(delimiter)
    return run(commands, { folder, environment: { ...process.env, PATH, ...variables() }, timeoutMs })
  }
  return {
    cluster,
    contentDir,
    backup,
    databaseUrl,
    asPostgres,
    asRelay,
    createCluster: async (settings = []) => {
      const lines = [`port=${port}`, "listen_addresses='127.0.0.1'", "unix_socket_directories=''", ...settings]
      await asPostgres(`
        initdb --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync >/dev/null
        printf '%s\\n' ${lines.map((line) => `"${line}"`).join(' ')} >>"$PGDATA/postgresql.conf"
        pg_ctl start --log="$BACKUP/postgres.log" >/dev/null
        createuser relay
        createdb --owner=relay relay
      `)
    },
    follow: async (heading, which) => {
      const found = page.steps.filter((step) => step.heading === heading)
      if (found.length === 0) throw new Error(`docs/backup.md has no commands under ${heading}`)
      let output = ''
      for (const { commands } of which === undefined ? found : [found[which]!]) {
        onBlock(commands)
        const runAs = /^# as the account of (PostgreSQL|the relay)\n/.exec(commands)?.[1] === 'PostgreSQL' ? asPostgres : asRelay
        output += (await runAs(commands)).join('')
      }
      return output
    },
    destroyCluster: async () => {
      await asPostgres('pg_ctl stop --mode=immediate')
      await rm(cluster, { recursive: true })
    },
    stop: async () => void (await asPostgres('test ! -e "$PGDATA/postmaster.pid" || pg_ctl stop --mode=immediate')),
  }
}
