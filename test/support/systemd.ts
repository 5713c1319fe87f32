// A systemd of its own, in a container that has only /usr of this machine, its network, and an /etc of its own.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../src/base/errors.ts'
import { newId } from '../../src/base/ids.ts'
import { startProgram } from '../../src/programs/programs.ts'
import { stopServer, waitUntilReady } from '../../src/programs/server-process.ts'
import { fromDebian, type ToolOptions } from './tools.ts'

const run = promisify(execFile)
const stopTimeoutMs = 60_000
// Of a command beside systemd, on a busy machine.
const commandTimeoutMs = 60_000

export interface Systemd extends AsyncDisposable {
  /** Runs a command beside systemd. @returns its output */
  exec(file: string, ...args: string[]): Promise<string>
}

/**
 * Boots systemd.
 * @param folder keeps the log of the boot
 * @param files paths of this machine, by the path that each has in the container, where it cannot be written
 * @returns a text that says why none can be booted on this machine
 * @throws if a container can be started, and systemd does not boot in it
 */
export const bootSystemd = async (folder: string, files: Record<string, string>, tools: ToolOptions): Promise<Systemd | string> => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/lib/systemd/systemd'))
    return 'only root on a Linux with systemd can boot one'
  let nspawn: string
  try {
    nspawn = await fromDebian('systemd-nspawn', tools)
    const { command, env } = containerOf(newId().toLowerCase(), tools)
    await run(nspawn, [...command, '/bin/true'], { env, timeout: commandTimeoutMs })
  } catch (thrown) {
    return `no container can be started: ${messageOf(thrown)}`
  }
  return boot(nspawn, folder, files, tools)
}

/** Returns how systemd-nspawn is called for a container that keeps nothing. */
const containerOf = (id: string, { config }: ToolOptions) => ({
  // A manager of the machine gives the container a place among its control groups. Without one, this process has to be enough.
  command: ['--quiet', '--directory=/', '--volatile=yes', `--machine=relay-${id}`, '--console=read-only', '--register=no'].concat(
    existsSync('/run/systemd/system') ? [] : ['--keep-unit'],
  ),
  env: { ...config.childEnvironment, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' },
})

const boot = async (nspawn: string, folder: string, files: Record<string, string>, tools: ToolOptions): Promise<Systemd> => {
  const id = newId().toLowerCase()
  // With an id, this is no first boot, which would ask for a password and enable every unit in /usr.
  const machineId = join(folder, 'machine-id')
  await writeFile(machineId, `${Buffer.from(id).toString('hex').slice(-32)}\n`)
  const binds = Object.entries({ ...files, '/etc/machine-id': machineId }).map(([path, source]) => `--bind-ro=${source}:${path}`)
  const logFile = join(folder, 'systemd.log')
  const log = await open(logFile, 'w')
  const { command, env } = containerOf(id, tools)
  const child = await startProgram(nspawn, [...command, '--boot', ...binds, 'systemd.unit=basic.target'], {
    env,
    stdio: ['ignore', log.fd, log.fd],
  })
  await log.close()
  const stop = () => stopServer(child, stopTimeoutMs)
  const exec = async (file: string, ...args: string[]): Promise<string> => {
    const first = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim()
    const enter = ['--target', first, '--mount', '--pid', '--ipc', '--uts', '--root', '--wd']
    return (await run('nsenter', [...enter, file, ...args], { timeout: commandTimeoutMs })).stdout.trim()
  }
  try {
    const isReady = () =>
      exec('systemctl', 'is-active', 'basic.target').then(
        () => true,
        () => false,
      )
    await waitUntilReady(child, { name: 'systemd', logFile, isReady })
    return { exec, [Symbol.asyncDispose]: stop }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}
