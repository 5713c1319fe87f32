import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import ssh2, { type Connection, type SFTPWrapper } from 'ssh2'

const { STATUS_CODE } = ssh2.utils.sftp
// The first draft ends with OP_UNSUPPORTED, 8.
const firstLaterStatus = 9

export interface PlainSftpServer extends AsyncDisposable {
  port: number
  files: Map<string, Buffer>
  /** Every call that changed a file, in order. */
  calls: string[]
  /** Refuses every file from now on. */
  forbid(code?: number, message?: string): void
  /** Refuses, from now on, to remove files under their final names, as a server over write-once storage does. */
  keepFiles(code: number): void
  /** The files that it has taken, in order, since `takeClosedFiles`. */
  taken: { path: string; content: Buffer }[]
  /** Removes, from now on, each file when it is closed after writing, as a gateway that forwards files does. */
  takeClosedFiles(): void
  /** Refuses, from now on, every rename, after it was made or without it. */
  failRenames(code: number, isMade: boolean): void
  /** Refuses, from now on, names that begin with a dot. */
  forbidDots(): void
  folders: Set<string>
  /** What was written. */
  received: { bytes: number }
  /** Refuses, from now on, writes behind a position. */
  failWritesAfter(at: number, code?: number): void
  /** Answers, from now on, every stat with a status, or without types. */
  answerStats(answer: number | 'untyped'): void
  /** Refuses, from now on, to create folders. */
  forbidFolders(code: number): void
  /** Refuses, from now on, to open files for reading. */
  forbidReading(): void
  stop(): Promise<void>
}

/**
 * Starts an SFTP server that supports only the first draft of the protocol: no extensions, a rename that refuses an
 * existing name, and a password by keyboard-interactive only. OpenSSH cannot be configured to behave like this.
 */
export const startPlainSftpServer = async (password: string, port = 0): Promise<PlainSftpServer> => {
  const files = new Map<string, Buffer>()
  const calls: string[] = []
  let keepsFiles: number | undefined
  let isReadable = true
  let takesFiles = false
  let permitsDots = true
  let renames: { code: number; isMade: boolean } | undefined
  const taken: PlainSftpServer['taken'] = []
  const folders = new Set<string>(['.'])
  let stats: number | 'untyped' | undefined
  let folderRefusal: number | undefined
  const writesEnd: { at: number; code: number } = { at: Infinity, code: STATUS_CODE.FAILURE }
  const received = { bytes: 0 }
  let refusal: { code: number; message: string | undefined } | undefined

  const serve = (sftp: SFTPWrapper) => {
    const handles = new Map<string, string>()
    const written = new Set<string>()
    const answer = (id: number, ok: boolean, otherwise: number = STATUS_CODE.NO_SUCH_FILE) =>
      ok || otherwise < firstLaterStatus ? sftp.status(id, ok ? STATUS_CODE.OK : otherwise) : sendStatus(sftp, id, otherwise)
    const stat = (id: number, path: string) => {
      if (typeof stats === 'number') return answer(id, false, stats)
      const type = (bits: number) => (stats === 'untyped' ? 0 : bits)
      if (folders.has(path)) return sftp.attrs(id, { mode: type(0o40_755), uid: 0, gid: 0, size: 0, atime: 0, mtime: 0 })
      const file = files.get(path)
      return file ? sftp.attrs(id, { mode: type(0o100_644), uid: 0, gid: 0, size: file.length, atime: 0, mtime: 0 }) : answer(id, false)
    }
    const parentOf = (path: string) => path.split('/').slice(0, -1).join('/') || '.'
    sftp.on('MKDIR', (id, path) => {
      calls.push(`mkdir ${path}`)
      if (folderRefusal !== undefined) return answer(id, false, folderRefusal)
      if (folders.has(path)) return answer(id, false, STATUS_CODE.FAILURE)
      folders.add(path)
      answer(id, true)
    })
    sftp.on('RMDIR', (id, path) => answer(id, folders.delete(path)))
    sftp
      .on('STAT', stat)
      .on('LSTAT', stat)
      .on('FSTAT', (id, handle) => stat(id, handles.get(handle.toString()) ?? ''))
    sftp.on('OPEN', (id, path, flags) => {
      if (refusal) return sftp.status(id, refusal.code, refusal.message)
      const isWritten = (flags & ssh2.utils.sftp.OPEN_MODE.WRITE) !== 0
      if (!isWritten && !isReadable) return answer(id, false, STATUS_CODE.PERMISSION_DENIED)
      if (!permitsDots && path.split('/').at(-1)!.startsWith('.')) return answer(id, false, STATUS_CODE.PERMISSION_DENIED)
      if (isWritten) {
        if (!folders.has(parentOf(path))) return answer(id, false)
        if (keepsFiles !== undefined && files.has(path) && !path.endsWith('.part')) return answer(id, false, keepsFiles)
        if ((flags & ssh2.utils.sftp.OPEN_MODE.TRUNC) !== 0 || !files.has(path)) files.set(path, Buffer.alloc(0))
        written.add(String(id))
      }
      handles.set(String(id), path)
      sftp.handle(id, Buffer.from(String(id)))
    })
    sftp.on('WRITE', (id, handle, offset, data) => {
      const path = handles.get(handle.toString()) ?? ''
      const file = files.get(path) ?? Buffer.alloc(0)
      if (offset + data.length > writesEnd.at) return answer(id, false, writesEnd.code)
      received.bytes += data.length
      files.set(path, withBytes(file, offset, data))
      answer(id, file.length >= offset, STATUS_CODE.FAILURE)
    })
    sftp.on('READ', (id, handle, offset, length) => {
      const bytes = files.get(handles.get(handle.toString()) ?? '')?.subarray(offset, offset + length)
      if (!bytes || bytes.length === 0) return answer(id, false, STATUS_CODE.EOF)
      // Fewer than were asked for, as the protocol permits.
      sftp.data(id, bytes.subarray(0, 20_000))
    })
    sftp.on('CLOSE', (id, handle) => {
      const path = handles.get(handle.toString()) ?? ''
      const content = files.get(path)
      if (takesFiles && written.delete(handle.toString()) && content) {
        taken.push({ path, content })
        files.delete(path)
      }
      answer(id, true)
    })
    sftp.on('REMOVE', (id, path) => {
      calls.push(`remove ${path}`)
      if (keepsFiles !== undefined && !path.endsWith('.part')) return answer(id, false, keepsFiles)
      answer(id, files.delete(path))
    })
    sftp.on('RENAME', (id, from, to) => {
      calls.push(`rename ${from} ${to}`)
      const file = files.get(from)
      if (renames) {
        if (renames.isMade && file) files.set(to, file).delete(from)
        return answer(id, false, renames.code)
      }
      if (!file || files.has(to)) return answer(id, false, STATUS_CODE.FAILURE)
      files.set(to, file)
      answer(id, files.delete(from))
    })
  }

  const server = new ssh2.Server({ hostKeys: [ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }).private] }, (client) => {
    withoutDelay(client)
    client.on('error', () => {})
    client.on('authentication', (context) => {
      if (context.method !== 'keyboard-interactive') return context.reject(['keyboard-interactive'])
      context.prompt([{ prompt: 'Password:', echo: false }], ([answered]) => (answered === password ? context.accept() : context.reject()))
    })
    client.on('session', (accept) => {
      accept().on('sftp', (acceptSftp) => serve(acceptSftp()))
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.close()
    await once(server, 'close')
  }
  return {
    port: (server.address() as AddressInfo).port,
    files,
    folders,
    calls,
    received,
    failWritesAfter: (at, code = STATUS_CODE.FAILURE) => void Object.assign(writesEnd, { at, code }),
    taken,
    takeClosedFiles: () => {
      takesFiles = true
    },
    failRenames: (code, isMade) => {
      renames = { code, isMade }
    },
    forbidDots: () => {
      permitsDots = false
    },
    forbid: (code = STATUS_CODE.PERMISSION_DENIED, message) => {
      refusal = { code, message }
    },
    keepFiles: (code) => {
      keepsFiles = code
    },
    answerStats: (answer) => {
      stats = answer
    },
    forbidFolders: (code) => {
      folderRefusal = code
    },
    forbidReading: () => {
      isReadable = false
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

const roomy = new WeakSet<object>()

/** Writes into a file, with room for the writes that follow: a copy of a large file for each of them takes minutes. */
const withBytes = (file: Buffer, offset: number, data: Buffer): Buffer => {
  const length = Math.max(file.length, offset + data.length)
  const room = file.buffer.byteLength - file.byteOffset
  let grown = length <= room && roomy.has(file.buffer) ? Buffer.from(file.buffer, file.byteOffset, length) : undefined
  if (!grown) {
    const memory = new ArrayBuffer(length * 2)
    roomy.add(memory)
    grown = Buffer.from(memory, 0, length)
    file.copy(grown)
  }
  data.copy(grown, offset)
  return grown
}

/** Answers with a status of a later draft of the protocol, without a text. ssh2 refuses to send those. */
const sendStatus = (sftp: SFTPWrapper, id: number, code: number) => {
  const packet = Buffer.alloc(4 + 1 + 4 + 4 + 4 + 4)
  packet.writeUInt32BE(packet.length - 4, 0)
  packet[4] = 101
  packet.writeUInt32BE(id, 5)
  packet.writeUInt32BE(code, 9)
  const { _protocol: protocol, outgoing } = sftp as unknown as {
    _protocol: { channelData(id: number, bytes: Buffer): void }
    outgoing: { id: number }
  }
  protocol.channelData(outgoing.id, packet)
}

/** Sends each answer at once: otherwise, each takes 40 ms. The types of ssh2 lack the method. */
export const withoutDelay = (client: Connection) => (client as unknown as { setNoDelay(on: boolean): void }).setNoDelay(true)
