import { createHash } from 'node:crypto'
import ssh2, { type AuthenticationType, type ConnectConfig, type SFTPWrapper } from 'ssh2'
import { createTtlCache } from '../../base/ttl-cache.ts'
import type { AttemptContext, Target } from '../connector.ts'
import { during } from '../shared/operation.ts'
import { acceptedHostKeyTypes, hostKeyTypeOf, offeredAlgorithms } from './algorithms.ts'
import { type Demanded, channelError, hostKeyMismatch, isNoCommonHostKey, sessionError, withStatus } from './errors.ts'
import { readPrivateKey } from './private-key.ts'
import type { SftpConfig, SftpCredentials } from './schema.ts'

type Done<T> = (error?: Error | null, value?: T) => void

/** An open SFTP channel. Every call ends with its answer, with the signal or with the connection. */
export interface SftpSession {
  sftp: SFTPWrapper
  /** @param operation with its path, for the error of a server that refuses it */
  call<T = void>(operation: string, run: (done: Done<T>) => void, signal: AbortSignal): Promise<T>
  end(): void
  /** The fingerprint of the host key that the server presented. */
  hostKey: string
}

// The time for an orderly end of the connection, in milliseconds.
const endTimeoutMs = 1_000

// The type of host key with which a server has presented a pinned fingerprint, so that the next connection asks for it first.
const pinnedTypes = createTtlCache<string>({ maxEntries: 1_000 })

/**
 * Connects and signs in. A server has a host key of each type, and the pinned one may be another than it presents first: the relay then asks for
 * the other types, one connection after the other. Nothing is sent before the pinned key was presented.
 * @throws DeliveryError if no SFTP channel could be opened
 */
export const openSftpSession = async (target: Target<SftpConfig, SftpCredentials>, context: AttemptContext): Promise<SftpSession> => {
  const { host_key_sha256: pin } = target.config
  let types = acceptedHostKeyTypes(target.config, pin && pinnedTypes.get(pin))
  const presented: string[] = []
  const { host, port } = target.config
  for (;;) {
    try {
      return await during(`sign-in at ${host}:${port}`, () => connect(target, context, types))
    } catch (thrown) {
      if (!(thrown instanceof OtherHostKey)) {
        // The server has no key of the types that are left.
        if (presented.length > 0 && isNoCommonHostKey(thrown)) throw hostKeyMismatch(presented)
        throw thrown
      }
      presented.push(thrown.fingerprint)
      types = types.filter((type) => type !== thrown.type)
      if (types.length === 0) throw hostKeyMismatch(presented)
    }
  }
}

/** The server has presented another host key than the pinned one. */
class OtherHostKey extends Error {
  readonly type: string
  readonly fingerprint: string

  constructor(type: string, fingerprint: string) {
    super(`the server presented the host key ${fingerprint}`)
    this.name = 'OtherHostKey'
    this.type = type
    this.fingerprint = fingerprint
  }
}

/** @param types of host keys that the server may present */
const connect = async (
  { config, credentials }: Target<SftpConfig, SftpCredentials>,
  context: AttemptContext,
  types: readonly string[],
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
  let otherKey: OtherHostKey | undefined
  const promised = <T>(run: (done: Done<T>) => void, signal: AbortSignal) =>
    new Promise<T>((resolve, reject) => {
      const stop = () => reject(signal.reason as Error)
      if (signal.aborted) return stop()
      // ssh2 never calls back for a request on a closed connection.
      if (isClosed) return reject(failure ?? new Error('the connection is closed'))
      signal.addEventListener('abort', stop, { once: true })
      const done: Done<T> = (error, value) => {
        signal.removeEventListener('abort', stop)
        if (error) reject(failure ?? withStatus(error))
        else resolve(value as T)
      }
      try {
        run(done)
      } catch (thrown) {
        done(thrown as Error)
      }
    })
  const call: SftpSession['call'] = (operation, run, signal) => during(operation, () => promised(run, signal))
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

  const { host_key_sha256: pin } = config
  let demanded: Demanded | undefined
  const options: ConnectConfig = {
    sock: socket,
    username: credentials.username,
    readyTimeout: context.connectTimeoutMs,
    ...signInOptions(credentials, (left, isPartial) => {
      demanded = { left, isPartial }
    }),
    algorithms: offeredAlgorithms(config, types),
    hostVerifier: (key: Buffer) => {
      const actual = createHash('sha256').update(key).digest()
      const type = hostKeyTypeOf(key)
      hostKey = `SHA256:${actual.toString('base64').replace(/=+$/, '')}`
      if (pin !== undefined && !actual.equals(fingerprintBytes(pin))) otherKey = new OtherHostKey(type, hostKey)
      else if (pin !== undefined) pinnedTypes.set(pin, type)
      return otherKey === undefined
    },
  }
  let isSignedIn = false
  try {
    await promised<void>((done) => {
      client.once('ready', () => done()).once('error', done)
      client.once('close', () => done(new Error('the server closed the connection')))
      client.connect(options)
    }, context.signal)
    isSignedIn = true
    const sftp = await promised<SFTPWrapper>((done) => client.sftp(done), context.signal)
    if (pin === undefined) context.pin({ host_key_sha256: hostKey })
    return { sftp, call, end, hostKey }
  } catch (thrown) {
    end()
    socket.destroy()
    context.signal.throwIfAborted()
    throw otherKey ?? (isSignedIn ? channelError(thrown) : sessionError(thrown, demanded))
  }
}

/** Returns how to sign in: by what the credentials have and the server still asks for, each once. A server may demand a key and a password. */
const signInOptions = (
  { private_key: key, passphrase, password }: SftpCredentials,
  onRefused: (left: string[], isPartial: boolean) => void,
): ConnectConfig => {
  const methods: AuthenticationType[] = []
  if (key !== undefined) methods.push('publickey')
  if (password !== undefined) methods.push('password', 'keyboard-interactive')
  let isFirst = true
  const nextMethod = (left: AuthenticationType[] | null): AuthenticationType | false => {
    // The server answers with the methods that it accepts.
    if (isFirst) {
      isFirst = false
      return 'none'
    }
    const at = methods.findIndex((method) => left?.includes(method) ?? true)
    return methods.splice(Math.max(at, 0), 1)[0] ?? false
  }
  const read = key === undefined ? {} : readPrivateKey(key, passphrase)
  return {
    ...(typeof read === 'string' ? {} : read),
    ...(password !== undefined && { password, tryKeyboard: true }),
    authHandler: (left: AuthenticationType[] | null, isPartial: boolean | null) => {
      if (left) onRefused(left, isPartial === true)
      return nextMethod(left)
    },
  }
}

/** Parses a fingerprint: `SHA256:` and base64 as OpenSSH prints it, or hex. */
export const fingerprintBytes = (text: string) =>
  /^[0-9a-f:]{64,}$/i.test(text) ? Buffer.from(text.replaceAll(':', ''), 'hex') : Buffer.from(text.replace(/^SHA256:/, ''), 'base64')
