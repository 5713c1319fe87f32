import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ssh2 from 'ssh2'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'

const run = promisify(execFile)

export interface Sshd extends AsyncDisposable {
  port: number
  username: string
  privateKey: string
  /** The fingerprint that ssh-keygen prints. */
  hostKeyFingerprint: string
  /** The folder of a client after login. */
  directory: string
  stop(): Promise<void>
}

/**
 * Starts an OpenSSH server with keys and configuration of its own, for SFTP only. Its one user is the user who runs the
 * tests.
 */
export const startSshd = async (): Promise<Sshd> => {
  const binary = process.env.TEST_SSHD_BIN ?? '/usr/sbin/sshd'
  const root = await mkdtemp(join(tmpdir(), 'relay-sshd-'))
  const directory = join(root, 'data')
  await mkdir(directory)
  // sshd requires this folder for privilege separation.
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true })

  const host = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 })
  const user = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 })
  await writeFile(join(root, 'host_key'), host.private, { mode: 0o600 })
  await writeFile(join(root, 'host_key.pub'), host.public)
  await writeFile(join(root, 'authorized_keys'), user.public)
  const port = await findFreePort()
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(root, 'host_key')}`,
    `PidFile ${join(root, 'pid')}`,
    `AuthorizedKeysFile ${join(root, 'authorized_keys')}`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    `Subsystem sftp internal-sftp -d ${directory}`,
  ]
  const configuration = join(root, 'sshd_config')
  // Since 9.8, a server locks out addresses that fail to log in. All tests share one address.
  await writeFile(configuration, [...lines, 'PerSourcePenalties no', ''].join('\n'))
  await run(binary, ['-t', '-f', configuration]).catch(() => writeFile(configuration, [...lines, ''].join('\n')))

  const server = await startServer(binary, ['-D', '-e', '-f', configuration], { name: 'sshd', port, logFile: join(root, 'log') })
  const { stdout } = await run('ssh-keygen', ['-lf', join(root, 'host_key.pub')])
  const stop = async () => {
    await server.stop()
    await rm(root, { recursive: true })
  }
  return {
    port,
    username: userInfo().username,
    privateKey: user.private,
    hostKeyFingerprint: stdout.split(' ')[1] ?? '',
    directory,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
