// Faults of PostgreSQL. Without it, nothing is acknowledged.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { until } from '../../test/support/until.ts'
import { untilStreaming, type Installation } from '../installation.ts'
import { databaseName, findBaseBackup, maxConnections, roleName } from '../postgres.ts'
import type { Row, Scene } from '../run-row.ts'

const run = promisify(execFile)

const isRoot = process.getuid?.() === 0 && process.platform === 'linux'
let folders = 0
/** Returns a new folder for a cluster. */
const newFolder = ({ workDir }: Installation): string => {
  folders += 1
  return join(workDir, `postgres-${folders}`)
}
const answerLost = 'a delivery whose record was lost with the database is made again'

export const needsStandby = async ({ config }: Installation) => ((await findBaseBackup(config)) ? undefined : 'pg_basebackup was not found')
const needsMount = async (installation: Installation) =>
  isRoot ? needsStandby(installation) : 'it mounts a file system, which only root may do, on Linux'

const crashed: Row = {
  name: 'postgres-crashed',
  fault: 'The postmaster is killed with SIGKILL and started again after 3 s',
  mayDuplicate: answerLost,
  run: async ({ installation, returned, hold }) => {
    const postgres = installation.postgres()
    await postgres.kill()
    await hold(3_000, 10_000)
    await postgres.start()
    returned()
  },
}

const frozen: Row = {
  name: 'postgres-frozen',
  fault: 'Every process of PostgreSQL is stopped with SIGSTOP for 8 s (long form: 60 s), and continues',
  mayDuplicate: answerLost,
  run: async ({ installation, returned, hold }) => {
    const postgres = installation.postgres()
    postgres.freeze()
    await hold(8_000, 60_000)
    postgres.thaw()
    returned()
  },
}

const silent: Row = {
  name: 'postgres-silent',
  fault:
    'Every packet between the relay and PostgreSQL is lost for 10 s (long form: 60 s), and nothing is closed. Connections that were open stay silent for ever',
  mayDuplicate: answerLost,
  run: async ({ installation: { proxies }, returned, hold }) => {
    const paths = [proxies.apiDatabase, proxies.workerDatabase]
    for (const path of paths) path.set({ kind: 'lossy' })
    await hold(10_000, 60_000)
    for (const path of paths) path.set({ kind: 'up' })
    returned()
  },
}

// What the trigger of `record-fails-once` refuses. The sequence counts the refusals, because it is not rolled back with them.
const refuseRecords = (condition: string, code: string) => `
  create or replace function faults_refuse_record() returns trigger language plpgsql as $$
  begin
    if ${condition} then
      raise exception 'refused by script/faults' using errcode = '${code}';
    end if;
    return new;
  end
  $$`
const refusals = 5

const recordFails: Row = {
  name: 'record-fails-once',
  fault:
    `The statement that records an attempt fails: ${refusals} times as the victim of a deadlock, and then for 20 s for want of memory. ` +
    'Each attempt has arrived by then, and may neither be made again nor count as failed',
  acceptsAlways: true,
  run: async ({ installation: { query }, workspace, returned, note, hold }) => {
    await query('create sequence faults_refusals')
    await query(refuseRecords(`nextval('faults_refusals') <= ${refusals}`, '40P01'))
    await query(
      'create trigger faults_refuse_record before insert on delivery_attempts for each row execute function faults_refuse_record()',
    )
    const count = async () => Number((await query<{ last_value: string }>('select last_value from faults_refusals'))[0]!.last_value)
    await until('the deadlocks are over', async () => (await count()) > refusals, Boolean, 60_000)
    await query(refuseRecords(`nextval('faults_refusals') > 0`, '53200'))
    await hold(20_000, 20_000)
    await query('drop trigger faults_refuse_record on delivery_attempts')
    returned()
    const [failed] = await query<{ failures: number }>(
      `select count(*)::integer as failures from delivery_attempts where workspace_id = $1 and outcome <> 'delivered'`,
      [workspace.id],
    )
    note(`${(await count()) - 1} records failed; ${failed!.failures} attempts are recorded as failed`)
    if (failed!.failures > 0) throw new Error(`${failed!.failures} attempts are recorded as failed, although they have arrived`)
  },
  cleanUp: async ({ query }) => {
    await query('drop function if exists faults_refuse_record cascade')
    await query('drop sequence if exists faults_refusals')
  },
}

const outOfConnections: Row = {
  name: 'postgres-out-of-connections',
  fault:
    'Another client of the same role takes every connection, and the connections of the relay are terminated. The client leaves after 8 s',
  mayDuplicate: answerLost,
  run: async ({ installation, returned, hold }) => {
    const postgres = installation.postgres()
    const taken: Client[] = []
    const take = async () => {
      const client = new Client({ host: '127.0.0.1', port: postgres.port, user: roleName, database: databaseName })
      client.on('error', () => {})
      await client.connect()
      taken.push(client)
    }
    await postgres.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${roleName}' and application_name like 'relay %'`,
    )
    // As many as the server allows, again and again, because the relay competes for them.
    const isOver = AbortSignal.timeout(3_000)
    while (!isOver.aborted && taken.length < maxConnections) {
      await take().catch(() => pause(20))
      if (taken.length % 20 === 0)
        await postgres.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${roleName}' and application_name like 'relay %'`,
        )
    }
    await hold(8_000, 60_000)
    await Promise.all(taken.map((client) => client.end()))
    returned()
  },
}

/** Kills the server, promotes its synchronous standby, and leads the relay to it. */
export const failOver = async ({ installation, hold }: Pick<Scene, 'installation' | 'hold'>): Promise<void> => {
  const primary = installation.postgres()
  const standby = await primary.startStandby(newFolder(installation))
  await primary.query(`alter system set synchronous_standby_names = 'standby'`)
  await primary.query('select pg_reload_conf()')
  await untilStreaming(primary, true)
  await hold(3_000, 20_000)
  await primary.kill()
  await standby.promote()
  await hold(2_000, 10_000)
  installation.usePostgres(standby)
}

const failedOverSync: Row = {
  name: 'postgres-failed-over',
  fault: 'The server is killed, and its synchronous standby (synchronous_standby_names) is promoted; the address leads to it 2 s later',
  cannotRun: needsStandby,
  mayDuplicate: answerLost,
  run: async (scene) => {
    await failOver(scene)
    scene.returned()
  },
}

/** Returns the process of the standby that receives the write-ahead log. */
const walReceiver = async (standby: { query(sql: string): Promise<Record<string, unknown>[]> }): Promise<number> =>
  Number((await standby.query('select pid from pg_stat_wal_receiver'))[0]?.['pid'])

const failedOverAsync: Row = {
  name: 'postgres-failed-over-async',
  longOnly: true,
  fault:
    'The server is killed 2 s after its asynchronous standby stopped receiving, and the standby is promoted: commits of these 2 s are lost',
  cannotRun: needsStandby,
  mayDuplicate: answerLost,
  known:
    'asynchronous replication acknowledges commits that the standby does not have. A 2xx outlives a failover only with a synchronous standby',
  run: async ({ installation, returned, hold }) => {
    const primary = installation.postgres()
    const standby = await primary.startStandby(newFolder(installation))
    await untilStreaming(primary)
    await hold(2_000, 10_000)
    const receiver = await walReceiver(standby)
    process.kill(receiver, 'SIGSTOP')
    await pause(2_000)
    await primary.kill()
    process.kill(receiver, 'SIGKILL')
    // The standby takes the loss of a process for a crash, and restarts.
    await pause(1_000)
    while (!(await standby.query('select 1').catch(() => undefined))) await pause(200)
    await standby.promote()
    installation.usePostgres(standby)
    returned()
  },
}

/** Moves the database to a file system of its own, which `mount` mounts on a folder. */
const moveTo = async (installation: Installation, mount: (folder: string) => Promise<unknown>): Promise<string> => {
  const folder = newFolder(installation)
  await mkdir(folder)
  await mount(folder)
  await installation.moveDatabase(join(folder, 'cluster'))
  return folder
}

/** Moves the database back to the disk, and unmounts its file system. */
const moveBack = async (installation: Installation): Promise<void> => {
  const { folder } = installation.postgres()
  const mounted = join(folder, '..')
  await installation.moveDatabase(newFolder(installation))
  await run('umount', [mounted])
}

const diskFull: Row = {
  name: 'postgres-disk-full',
  fault: 'The file system of PostgreSQL, write-ahead log included, becomes full for 8 s (a tmpfs of a limited size), and grows again',
  mayDuplicate: answerLost,
  cannotRun: needsMount,
  run: async ({ installation, returned, hold }) => {
    const folder = await moveTo(installation, (path) => run('mount', ['-t', 'tmpfs', '-o', 'size=8g,mode=0755', 'tmpfs', path]))
    const postgres = installation.postgres()
    // A full disk under the write-ahead log ends PostgreSQL. A service manager starts it again.
    postgres.supervise()
    await hold(2_000, 5_000)
    // A size below what is used is refused, and PostgreSQL may have written since it was read.
    await until('the file system is shrunk to its content', async () => {
      const { stdout } = await run('df', ['--output=used', '-B1', folder])
      const size = Number(stdout.split('\n')[1]) + 256 * 1024
      return run('mount', ['-o', `remount,size=${size}`, folder]).then(
        () => true,
        () => false,
      )
    })
    await hold(8_000, 60_000)
    await run('mount', ['-o', 'remount,size=8g', folder])
    returned()
  },
  cleanUp: moveBack,
}

// EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: the file system stops at once, and drops whatever was not synced.
const shutDown = (folder: string) =>
  run('perl', ['-e', 'open(my $f, "<", $ARGV[0]) or die $!; my $flags = pack("L", 2); ioctl($f, 0x8004587D, $flags) or die $!', folder])

const powerLost = (name: string, more: Partial<Row>, settings: string[] = []): Row => ({
  name,
  fault:
    'The file system of PostgreSQL (ext4 on a loop device) stops and drops every write that was not synced; PostgreSQL is killed, the file system ' +
    'mounted again, and PostgreSQL started',
  mayDuplicate: answerLost,
  cannotRun: async (installation) =>
    (await needsMount(installation)) ?? (existsSync('/dev/loop-control') ? undefined : 'there are no loop devices'),
  run: async ({ installation, returned, hold }) => {
    const image = `${newFolder(installation)}.img`
    const mount = (folder: string) => run('mount', ['-o', 'loop', image, folder])
    await run('truncate', ['-s', '8G', image])
    await run('mkfs.ext4', ['-q', '-F', image])
    const folder = await moveTo(installation, mount)
    const postgres = installation.postgres()
    for (const setting of settings) await postgres.query(`alter system set ${setting}`)
    await postgres.query('select pg_reload_conf()')
    await hold(3_000, 20_000)
    await shutDown(folder)
    await postgres.kill()
    await run('umount', [folder])
    await mount(folder)
    await postgres.start()
    returned()
  },
  cleanUp: async (installation) => {
    for (const setting of settings) await installation.postgres().query(`alter system reset ${setting.split(' ')[0]}`)
    await moveBack(installation)
  },
  ...more,
})

export const databaseRows: Row[] = [
  crashed,
  frozen,
  silent,
  recordFails,
  outOfConnections,
  failedOverSync,
  failedOverAsync,
  powerLost('power-lost', {}),
  powerLost(
    'power-lost-without-sync',
    {
      longOnly: true,
      known: 'PostgreSQL runs with synchronous_commit=off here, to show that this row finds what is lost. The relay refuses nothing then',
    },
    ['synchronous_commit = off'],
  ),
  diskFull,
]
