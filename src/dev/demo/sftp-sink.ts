import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join, posix } from 'node:path'
import ssh2, { type AuthContext, type SFTPWrapper } from 'ssh2'

const { Server, utils } = ssh2
const { OPEN_MODE, STATUS_CODE } = utils.sftp

/**
 * Starts an SFTP server that stores uploaded files in a directory. It implements the part of SFTP that uploads need,
 * and unlike an OpenSSH server requires no installation.
 * @param inbox directory to create below `directory`
 */
export const startSftpSink = async (directory: string, inbox: string) => {
  await mkdir(join(directory, inbox), { recursive: true })
  const username = 'relay'
  const password = randomBytes(18).toString('base64url')
  // Not ed25519: ssh2 cannot read about one in a hundred of the ed25519 keys that it generates.
  const hostKey = utils.generateKeyPairSync('ecdsa', { bits: 256 })
  const server = new Server({ hostKeys: [hostKey.private] }, (client) => {
    client.on('authentication', (context) => (isAllowed(context, username, password) ? context.accept() : context.reject(['password'])))
    client.on('session', (accept) => {
      accept().on('sftp', (acceptSftp) => handleSftp(acceptSftp(), directory))
    })
    // The client disconnected without closing the session.
    client.on('error', () => client.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    username,
    password,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

const isAllowed = (context: AuthContext, username: string, password: string) => {
  if (context.method !== 'password' || context.username !== username) return false
  const received = Buffer.from(context.password)
  const expected = Buffer.from(password)
  return received.length === expected.length && timingSafeEqual(received, expected)
}

const handleSftp = (sftp: SFTPWrapper, directory: string) => {
  const files = new Map<number, FileHandle>()
  let lastHandle = 0
  const local = (path: string) => join(directory, posix.resolve('/', path))
  const fileOf = (handle: Buffer) => files.get(handle.readUInt32BE(0))

  const run = async (request: number, work: () => Promise<void>) => {
    try {
      await work()
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException
      sftp.status(
        request,
        code === 'ENOENT' ? STATUS_CODE.NO_SUCH_FILE : code === 'EACCES' ? STATUS_CODE.PERMISSION_DENIED : STATUS_CODE.FAILURE,
      )
    }
  }
  const runAndConfirm = (request: number, work: () => Promise<unknown>) =>
    void run(request, async () => {
      await work()
      sftp.status(request, STATUS_CODE.OK)
    })
  const sendAttributes = (request: number, path: string) =>
    void run(request, async () => {
      const { mode, uid, gid, size, atimeMs, mtimeMs } = await stat(local(path))
      sftp.attrs(request, { mode, uid, gid, size, atime: Math.floor(atimeMs / 1000), mtime: Math.floor(mtimeMs / 1000) })
    })

  sftp.on(
    'OPEN',
    (request, path, flags) =>
      void run(request, async () => {
        const file = await open(local(path), modeOf(flags))
        lastHandle += 1
        files.set(lastHandle, file)
        const handle = Buffer.alloc(4)
        handle.writeUInt32BE(lastHandle)
        sftp.handle(request, handle)
      }),
  )
  sftp.on('WRITE', (request, handle, offset, data) =>
    runAndConfirm(request, async () => fileOf(handle)!.write(data, 0, data.length, offset)),
  )
  sftp.on('CLOSE', (request, handle) =>
    runAndConfirm(request, async () => {
      await fileOf(handle)!.close()
      files.delete(handle.readUInt32BE(0))
    }),
  )
  sftp.on('MKDIR', (request, path) => runAndConfirm(request, () => mkdir(local(path))))
  sftp.on('REMOVE', (request, path) => runAndConfirm(request, () => rm(local(path))))
  sftp.on('RENAME', (request, from, to) => runAndConfirm(request, () => rename(local(from), local(to))))
  sftp.on('STAT', sendAttributes)
  sftp.on('LSTAT', sendAttributes)
  sftp.on('REALPATH', (request, path) => {
    const filename = posix.resolve('/', path)
    sftp.name(request, [{ filename, longname: filename, attrs: {} as never }])
  })
  sftp.on('close', () => {
    for (const file of files.values()) void file.close().catch(() => undefined)
  })
}

const modeOf = (flags: number): string => {
  if (flags & OPEN_MODE.EXCL) return 'wx'
  if (flags & OPEN_MODE.TRUNC) return 'w'
  return flags & OPEN_MODE.WRITE ? 'r+' : 'r'
}
