import { createHash } from 'node:crypto'
import ssh2, { type ConnectConfig, type SFTPWrapper } from 'ssh2'
import { messageOf } from '../errors.ts'
import { DeliveryError, type AttemptContext, type Target } from './connector.ts'
import { toDeliveryError } from './network-error.ts'
import type { SftpConfig, SftpCredentials } from './sftp-target.ts'

type Done<T> = (error?: Error | null, value?: T) => void

/** An open SFTP channel whose every call ends: by its answer, by the signal, or with the connection. */
export interface SftpSession {
  sftp: SFTPWrapper
  call<T = void>(run: (done: Done<T>) => void, signal: AbortSignal): Promise<T>
  end(): void
}

// long enough to say goodbye to a server that still listens
const farewellMs = 1_000

/** @throws DeliveryError where no channel came about */
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
    socket.destroy(Object.assign(new Error(`not a byte in ${context.idleTimeoutMs} ms`), { code: 'ETIMEDOUT' }))
  })

  const client = new ssh2.Client()
  let failure: Error | undefined
  let refusedKey: string | undefined
  const call = <T>(run: (done: Done<T>) => void, signal: AbortSignal) =>
    new Promise<T>((resolve, reject) => {
      const stop = () => reject(signal.reason as Error)
      if (signal.aborted) return stop()
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
    socket.setTimeout(farewellMs)
  }

  client.on('error', (error) => {
    failure ??= error
  })
  // many servers ask for the password this way only
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
      const seen = createHash('sha256').update(key).digest()
      if (config.host_key_sha256 === undefined || seen.equals(fingerprintBytes(config.host_key_sha256))) return true
      refusedKey = `SHA256:${seen.toString('base64').replace(/=+$/, '')}`
      return false
    },
  }
  try {
    await call<void>((done) => {
      client.once('ready', () => done()).once('error', done)
      client.once('close', () => done(new Error('the server closed the connection')))
      client.connect(options)
    }, context.signal)
    const sftp = await call<SFTPWrapper>((done) => client.sftp(done), context.signal)
    return { sftp, call, end }
  } catch (thrown) {
    end()
    socket.destroy()
    context.signal.throwIfAborted()
    throw refusedKey === undefined ? sessionError(thrown) : hostKeyMismatch(refusedKey)
  }
}

/** Takes `SHA256:` and base64 as OpenSSH prints it, or hex. */
export const fingerprintBytes = (text: string) =>
  /^[0-9a-f:]{64,}$/i.test(text) ? Buffer.from(text.replaceAll(':', ''), 'hex') : Buffer.from(text.replace(/^SHA256:/, ''), 'base64')

const hostKeyMismatch = (seen: string) =>
  new DeliveryError('host_key_mismatch', `the server shows the host key ${seen}, which is not the one in host_key_sha256: not connected`, {
    permanent: true,
  })

const sessionError = (thrown: unknown): DeliveryError => {
  const level = (thrown as { level?: string }).level
  if (level === 'client-authentication') {
    return new DeliveryError('credentials_refused', 'the server refused the user name and the password or key', {
      permanent: true,
      cause: thrown,
    })
  }
  if (level === 'client-timeout') return new DeliveryError('timeout', 'the SSH handshake was not over in time', { cause: thrown })
  if (messageOf(thrown) === 'Connection lost before handshake') {
    return new DeliveryError(
      'connection_failed',
      'the server closed the connection before a word of SSH: is host and port an SSH server, and has it room for one more connection?',
      { cause: thrown },
    )
  }
  return toDeliveryError(thrown, level === 'handshake' ? 'handshake_failed' : 'connection_failed')
}
