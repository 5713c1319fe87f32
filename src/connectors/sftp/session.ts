import { createHash } from 'node:crypto'
import ssh2, { type ConnectConfig, type SFTPWrapper } from 'ssh2'
import type { AttemptContext, Target } from '../connector.ts'
import { hostKeyMismatch, sessionError } from './errors.ts'
import type { SftpConfig, SftpCredentials } from './schema.ts'

type Done<T> = (error?: Error | null, value?: T) => void

/** An open SFTP channel. Every call ends with its answer, with the signal or with the connection. */
export interface SftpSession {
  sftp: SFTPWrapper
  call<T = void>(run: (done: Done<T>) => void, signal: AbortSignal): Promise<T>
  end(): void
  /** The fingerprint of the host key that the server presented. */
  hostKey: string
}

// The time for an orderly end of the connection, in milliseconds.
const endTimeoutMs = 1_000

/** Connects and signs in. @throws DeliveryError if no SFTP channel could be opened */
export const openSftpSession = async (
  { config, credentials }: Target<SftpConfig, SftpCredentials>,
  context: AttemptContext,
): Promise<SftpSession> => {
  const socket = await context.outbound.connect({
    host: config.host,
    port: config.port,
    timeoutMs: context.connectTimeoutMs,
    signal: context.signal,
  })
  socket.setTimeout(context.idleTimeoutMs, () => {
    socket.destroy(Object.assign(new Error(`no data for ${context.idleTimeoutMs} ms`), { code: 'ETIMEDOUT' }))
  })

  const client = new ssh2.Client()
  let failure: Error | undefined
  let isClosed = false
  let hostKey = ''
  let isKeyRefused = false
  const call = <T>(run: (done: Done<T>) => void, signal: AbortSignal) =>
    new Promise<T>((resolve, reject) => {
      const stop = () => reject(signal.reason as Error)
      if (signal.aborted) return stop()
      // ssh2 never calls back for a request on a closed connection.
      if (isClosed) return reject(failure ?? new Error('the connection is closed'))
      signal.addEventListener('abort', stop, { once: true })
      const done: Done<T> = (error, value) => {
        signal.removeEventListener('abort', stop)
        if (error) reject(failure ?? error)
        else resolve(value as T)
      }
      try {
        run(done)
      } catch (thrown) {
        done(thrown as Error)
      }
    })
  const end = () => {
    client.end()
    socket.setTimeout(endTimeoutMs)
  }

  client.on('error', (error) => {
    failure ??= error
  })
  client.on('close', () => {
    isClosed = true
  })
  // Many servers ask for the password only by this method.
  client.on('keyboard-interactive', (_name, _instructions, _language, prompts, answer) => {
    answer(prompts.map(() => credentials.password ?? ''))
  })

  const options: ConnectConfig = {
    sock: socket,
    username: credentials.username,
    readyTimeout: context.connectTimeoutMs,
    ...(credentials.private_key === undefined
      ? { password: credentials.password, tryKeyboard: true }
      : { privateKey: credentials.private_key, passphrase: credentials.passphrase }),
    hostVerifier: (key: Buffer) => {
      const actual = createHash('sha256').update(key).digest()
      hostKey = `SHA256:${actual.toString('base64').replace(/=+$/, '')}`
      isKeyRefused = config.host_key_sha256 !== undefined && !actual.equals(fingerprintBytes(config.host_key_sha256))
      return !isKeyRefused
    },
  }
  try {
    await call<void>((done) => {
      client.once('ready', () => done()).once('error', done)
      client.once('close', () => done(new Error('the server closed the connection')))
      client.connect(options)
    }, context.signal)
    const sftp = await call<SFTPWrapper>((done) => client.sftp(done), context.signal)
    if (config.host_key_sha256 === undefined) context.pin({ host_key_sha256: hostKey })
    return { sftp, call, end, hostKey }
  } catch (thrown) {
    end()
    socket.destroy()
    context.signal.throwIfAborted()
    throw isKeyRefused ? hostKeyMismatch(hostKey) : sessionError(thrown)
  }
}

/** Parses a fingerprint: `SHA256:` and base64 as OpenSSH prints it, or hex. */
export const fingerprintBytes = (text: string) =>
  /^[0-9a-f:]{64,}$/i.test(text) ? Buffer.from(text.replaceAll(':', ''), 'hex') : Buffer.from(text.replace(/^SHA256:/, ''), 'base64')
