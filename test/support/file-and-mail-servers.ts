import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'

const run = promisify(execFile)

const folderOf = async (name: string) => {
  const root = await mkdtemp(join(tmpdir(), `relay-${name}-`))
  await chmod(root, 0o755)
  return root
}

export interface ProFtpd extends AsyncDisposable {
  port: number
  password: string
  /** The folder of the account. */
  home: string
}

const proFtpdAccount = 1234

/** Starts ProFTPD with mod_sftp. Root only. @param directives are added to its configuration */
export const startProFtpd = async (directives: string[] = []): Promise<ProFtpd> => {
  const root = await folderOf('proftpd')
  const home = join(root, 'home')
  await mkdir(home)
  await chown(home, proFtpdAccount, proFtpdAccount)
  await run('ssh-keygen', ['-q', '-t', 'rsa', '-b', '2048', '-m', 'PEM', '-N', '', '-f', join(root, 'key')])
  const password = 'pass-word'
  const { stdout } = await run('openssl', ['passwd', '-6', password])
  const account = `relay:${stdout.trim()}:${proFtpdAccount}:${proFtpdAccount}::${home}:/bin/false`
  await writeFile(join(root, 'passwd'), `${account}\n`, { mode: 0o600 })
  const port = await findFreePort()
  const lines = [
    'LoadModule mod_sftp.c',
    'ServerName relay',
    'ServerType standalone',
    'DefaultAddress 127.0.0.1',
    'SocketBindTight on',
    `Port ${port}`,
    'User nobody',
    'Group nogroup',
    'UseIPv6 off',
    'RequireValidShell off',
    'WtmpLog off',
    'TransferLog none',
    'AuthOrder mod_auth_file.c',
    `AuthUserFile ${join(root, 'passwd')}`,
    `PidFile ${join(root, 'pid')}`,
    `ScoreboardFile ${join(root, 'score')}`,
    `DefaultRoot ${home}`,
    'SFTPEngine on',
    `SFTPHostKey ${join(root, 'key')}`,
    'SFTPAuthMethods password',
    'AllowOverwrite on',
    ...directives,
  ]
  await writeFile(join(root, 'conf'), `${lines.join('\n')}\n`)
  const program = process.env.TEST_PROFTPD_BIN ?? '/usr/sbin/proftpd'
  const server = await startServer(program, ['-n', '-q', '-c', join(root, 'conf')], { name: 'ProFTPD', port, logFile: join(root, 'log') })
  return {
    port,
    password,
    home,
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await rm(root, { recursive: true })
    },
  }
}

/** A mail server that keeps what it accepts. */
export interface KeepingMailServer extends AsyncDisposable {
  port: number
  /** Returns the recipients of each message that it has accepted. */
  accepted(): Promise<string[][]>
}

/** Starts Exim, which keeps what it accepts in its queue. Root only. @param options are main options; `acls` follow `begin acl` */
export const startExim = async (options: string[] = [], acls: string[] = []): Promise<KeepingMailServer> => {
  const root = await folderOf('exim')
  const spool = join(root, 'spool')
  await mkdir(spool, { mode: 0o777 })
  await chmod(spool, 0o777)
  const port = await findFreePort()
  const lines = [
    'primary_hostname = exim.acme.example',
    `daemon_smtp_ports = ${port}`,
    'local_interfaces = 127.0.0.1',
    `spool_directory = ${spool}`,
    `log_file_path = ${join(spool, 'log-%s')}`,
    `pid_file_path = ${join(root, 'pid')}`,
    'queue_only = true',
    'acl_smtp_rcpt = all',
    ...(options.some((line) => line.startsWith('acl_smtp_data')) ? [] : ['acl_smtp_data = all']),
    ...options,
    'begin acl',
    'all:',
    '  accept',
    ...acls,
  ]
  await writeFile(join(root, 'conf'), `${lines.join('\n')}\n`)
  const program = process.env.TEST_EXIM_BIN ?? '/usr/sbin/exim4'
  const server = await startServer(program, ['-bdf', '-C', join(root, 'conf')], { name: 'Exim', port, logFile: join(root, 'log') })
  const accepted = async () => {
    const names = await readdir(join(spool, 'input')).catch(() => [])
    const headers = names.filter((name) => name.endsWith('-H')).toSorted()
    const texts = await Promise.all(headers.map((name) => readFile(join(spool, 'input', name), 'utf8')))
    return texts.map(
      (text) =>
        text
          .slice(0, text.indexOf('\n\n'))
          .match(/^\S+@acme\.example$/gm)
          ?.filter((each) => each.startsWith('r')) ?? [],
    )
  }
  return {
    port,
    accepted,
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await rm(root, { recursive: true })
    },
  }
}

// The folders of a queue: those of its account, and those that its group may use as well.
const ownFolders = ['active', 'bounce', 'corrupt', 'defer', 'deferred', 'flush', 'hold', 'incoming', 'private', 'saved', 'trace']
const sharedFolders = ['maildrop', 'public']
const postfixServices = [
  'postlog unix-dgram n - n - 1 postlogd',
  'cleanup unix n - n - 0 cleanup',
  'qmgr unix n - n 300 1 qmgr',
  'rewrite unix - - n - - trivial-rewrite',
  'bounce unix - - n - 0 bounce',
  'defer unix - - n - 0 bounce',
  'trace unix - - n - 0 bounce',
  'proxymap unix - - n - - proxymap',
  'anvil unix - - n - 1 anvil',
]

/**
 * Starts Postfix, which holds what it accepts in its queue. Root only. Its own accounts are created when it is installed, so it gets two that every
 * Debian has.
 * @param parameters of main.cf
 */
export const startPostfix = async (parameters: string[] = []): Promise<KeepingMailServer> => {
  const programs = process.env.TEST_POSTFIX_DIR
  if (!programs) throw new Error('Postfix was not found')
  const root = await folderOf('postfix')
  const [queue, conf, data] = ['queue', 'conf', 'data'].map((name) => join(root, name)) as [string, string, string]
  for (const folder of [queue, conf, data]) await mkdir(folder)
  const inQueue = (names: string[]) => names.map((name) => join(queue, name))
  for (const folder of inQueue([...ownFolders, ...sharedFolders, 'pid'])) await mkdir(folder)
  await run('chown', ['mail', data, ...inQueue([...ownFolders, ...sharedFolders])])
  await run('chmod', ['700', ...inQueue(ownFolders)])
  await run('chgrp', ['games', ...inQueue(sharedFolders)])
  await run('chmod', ['730', ...inQueue(sharedFolders)])
  const port = await findFreePort()
  const libraries = join(programs, 'lib/postfix')
  const environment = { MAIL_CONFIG: conf, LD_LIBRARY_PATH: libraries }
  const lines = [
    'compatibility_level = 3.6',
    `queue_directory = ${queue}`,
    `data_directory = ${data}`,
    `command_directory = ${join(programs, 'sbin')}`,
    `daemon_directory = ${join(libraries, 'sbin')}`,
    `shlib_directory = ${libraries}`,
    `meta_directory = ${conf}`,
    `import_environment = ${Object.entries(environment)
      .map((pair) => pair.join('='))
      .join(' ')}`,
    'mail_owner = mail',
    'setgid_group = games',
    `maillog_file = ${join(root, 'maillog')}`,
    `maillog_file_prefixes = ${root}`,
    'myhostname = postfix.acme.example',
    'mydestination =',
    'inet_interfaces = 127.0.0.1',
    'inet_protocols = ipv4',
    'mynetworks = 127.0.0.0/8',
    'alias_maps =',
    'alias_database =',
    'smtpd_relay_restrictions = permit_mynetworks, reject',
    'smtpd_end_of_data_restrictions = check_client_access static:HOLD',
    ...parameters,
  ]
  await writeFile(join(conf, 'main.cf'), `${lines.join('\n')}\n`)
  await writeFile(join(conf, 'master.cf'), `${[`127.0.0.1:${port} inet n - n - - smtpd`, ...postfixServices].join('\n')}\n`)
  const server = await startServer(join(libraries, 'sbin/master'), ['-c', conf, '-d'], {
    name: 'Postfix',
    port,
    logFile: join(root, 'log'),
    env: environment,
  })
  const accepted = async () => {
    const ids = await readdir(join(queue, 'hold'))
    return Promise.all(
      ids.toSorted().map(async (id) => {
        const { stdout } = await run(join(programs, 'sbin/postcat'), ['-c', conf, '-e', join(queue, 'hold', id)], { env: environment })
        return [...stdout.matchAll(/^recipient: (.+)$/gm)].map(([, recipient = '']) => recipient)
      }),
    )
  }
  return {
    port,
    accepted,
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await rm(root, { recursive: true })
    },
  }
}
