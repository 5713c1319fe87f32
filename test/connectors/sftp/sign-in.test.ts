import { createHash, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import ssh2, { type AuthContext, type ServerConfig, type Session } from 'ssh2'
import { sftp } from '../../../src/connectors/sftp/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { disposable } from '../../support/disposable.ts'
import { withoutDelay } from '../../support/plain-sftp-server.ts'
import { share } from '../../support/share.ts'
import { contextOf, failure } from '../payloads.ts'

const { generateKeyPairSync: sshKeys, parseKey } = ssh2.utils
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))

const rsa = sshKeys('rsa', { bits: 2048 })
const hostKeys = { ed25519: sshKeys('ed25519'), ecdsa: sshKeys('ecdsa', { bits: 256 }), ecdsa384: sshKeys('ecdsa', { bits: 384 }), rsa }

const publicBytes = (text: string): Buffer => {
  const key = parseKey(text)
  if (key instanceof Error) throw key
  return key.getPublicSSH()
}
const fingerprintOf = ({ public: text }: { public: string }) =>
  `SHA256:${createHash('sha256').update(publicBytes(text)).digest('base64').replace(/=+$/, '')}`

/** Starts a server that knows one folder. @param authenticate decides about each method that a client offers */
const start = async ({
  keys = [hostKeys.ecdsa],
  algorithms,
  authenticate = (context) => context.accept(),
  onSession,
}: {
  keys?: { private: string }[]
  algorithms?: ServerConfig['algorithms']
  authenticate?: (context: AuthContext) => void
  onSession?: (session: Session) => void
} = {}) => {
  let connections = 0
  const own = { hostKeys: keys.map((key) => key.private), ...(algorithms && { algorithms }) }
  const server = new ssh2.Server(own, (client) => {
    connections += 1
    withoutDelay(client)
    client.on('error', () => {}).on('authentication', authenticate)
    client.on('session', (accept) => {
      const session = accept()
      if (onSession) return onSession(session)
      session.on('sftp', (acceptSftp) => {
        const channel = acceptSftp()
        const done = (id: number) => channel.status(id, 0)
        channel.on('STAT', (id) => channel.attrs(id, { mode: 0o40_755, uid: 0, gid: 0, size: 0, atime: 0, mtime: 0 }))
        channel.on('OPEN', (id) => channel.handle(id, Buffer.from('h')))
        for (const each of ['WRITE', 'CLOSE', 'RENAME', 'REMOVE', 'MKDIR', 'RMDIR'] as const) channel.on(each, done)
        channel.on('READ', (id) => channel.status(id, 1))
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    connections: () => connections,
    probe: (config: object = {}, credentials: object = { password: 's3cret-word' }) =>
      sftp.probe(
        {
          config: sftp.config.parse({ host: '127.0.0.1', port, ...config }),
          credentials: sftp.credentials.parse({ username: 'relay', ...credentials }),
        },
        contextOf(outbound),
      ),
    [Symbol.asyncDispose]: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}

describe('a server with several host keys', () => {
  test.each(Object.entries(hostKeys))('is trusted by its %s key, and is asked for that first from then on', async (_, key) => {
    await using server = await start({ keys: Object.values(hostKeys) })
    const pin = { host_key_sha256: fingerprintOf(key) }
    expect(await server.probe(pin)).toContain(fingerprintOf(key))
    const before = server.connections()
    await server.probe(pin)
    expect(server.connections() - before).toBe(1)
  })

  test('is refused if none of them is the pinned one, with all their fingerprints, and gets no credentials', async () => {
    const keys = [hostKeys.ed25519, hostKeys.ecdsa]
    let offers = 0
    await using server = await start({
      keys,
      authenticate: (context) => {
        offers += 1
        context.accept()
      },
    })
    const error = await failure(server.probe({ host_key_sha256: fingerprintOf(hostKeys.rsa) }))
    expect(error).toMatchObject({ code: 'host_key_mismatch', permanent: true })
    for (const key of keys) expect(error.message).toContain(fingerprintOf(key))
    expect([offers, server.connections()]).toEqual([0, 3])
  })
})

describe('a server that demands a key and a password', () => {
  const key = sshKeys('ed25519')
  const both = { private_key: key.private, password: 's3cret-word' }
  const inOrder = (order: string[]) => () => {
    const left = [...order]
    return (context: AuthContext) => {
      if (context.method !== left[0]) return context.reject(left.slice(0, 1) as never)
      if (context.method === 'publickey' && !context.signature) return context.accept()
      if (context.method === 'password' && context.password !== 's3cret-word') return context.reject(left.slice(0, 1) as never)
      if (context.method === 'keyboard-interactive') {
        return context.prompt([{ prompt: 'Password:', echo: false }], ([word]) =>
          word === 's3cret-word' ? context.accept() : context.reject(),
        )
      }
      left.shift()
      if (left.length === 0) context.accept()
      else context.reject([left[0]] as never, true)
    }
  }

  test.each([[['publickey', 'password']], [['password', 'publickey']], [['publickey', 'keyboard-interactive']]])(
    'gets %j',
    async (order) => {
      await using server = await start({ authenticate: inOrder(order)() })
      expect(await server.probe({}, both)).toContain('signed in')
    },
  )

  test('says what is missing if it gets the key only', async () => {
    await using server = await start({ authenticate: inOrder(['publickey', 'password'])() })
    const error = await failure(server.probe({}, { private_key: key.private }))
    expect(error).toMatchObject({
      code: 'credentials_refused',
      permanent: true,
      message: expect.stringContaining('demands more: password') as string,
    })
  })
})

describe('a private key', () => {
  const accepting = (publicKey: Buffer) => (context: AuthContext) =>
    context.method === 'publickey' && context.key.data.equals(publicKey) ? context.accept() : context.reject(['publickey'])
  const encrypted = { cipher: 'aes-256-cbc', passphrase: 'pass-word' } as const
  const forms = [
    ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, 'pkcs1'],
    ['P-256', generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'sec1'],
    ['P-521', generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey, 'sec1'],
    ['Ed25519', generateKeyPairSync('ed25519').privateKey, 'pkcs8'],
  ] as const

  test.each(forms)(
    'of type %s signs in in every PEM form, with and without a passphrase, and with text around it',
    async (_, key, ownForm) => {
      const plain = key.export({ type: 'pkcs8', format: 'pem' }).toString()
      const cases = [
        { private_key: plain },
        { private_key: `Key of the relay\n${plain.replaceAll('\n', '\r\n')}\nthe end\n` },
        { private_key: plain.replaceAll('\n', '\\n') },
        { private_key: plain.replaceAll(/^/gm, '  ') },
        { private_key: key.export({ type: 'pkcs8', format: 'pem', ...encrypted }).toString(), passphrase: 'pass-word' },
        ...(ownForm === 'pkcs8' ? [] : [{ private_key: key.export({ type: ownForm, format: 'pem' } as never).toString() }]),
      ]
      const parsed = sftp.credentials.parse({ username: 'relay', private_key: plain })
      expect(parsed).toMatchObject({ private_key: plain })
      const seen = new Set<string>()
      await using server = await start({
        authenticate: (context) => {
          if (context.method !== 'publickey') return context.reject(['publickey'])
          seen.add(context.key.data.toString('hex'))
          context.accept()
        },
      })
      for (const credentials of cases) expect(await server.probe({}, credentials)).toContain('signed in')
      expect(seen.size).toBe(1)
    },
  )

  test('is not something else, and the refusal says what it is', () => {
    const issueOf = (credentials: object) => sftp.credentials.safeParse({ username: 'relay', ...credentials }).error?.issues[0]?.message
    const dsa = generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
    expect(issueOf({ private_key: hostKeys.rsa.public })).toContain('public key')
    expect(issueOf({ private_key: 'PuTTY-User-Key-File-3: ssh-rsa' })).toContain('OpenSSH form')
    expect(issueOf({ private_key: dsa.toString() })).toContain('type')
    const sealed = forms[0][1].export({ type: 'pkcs8', format: 'pem', ...encrypted }).toString()
    for (const passphrase of [undefined, 'wrong']) expect(issueOf({ private_key: sealed, passphrase })).toContain('passphrase')
  })

  test('that the server knows is used, whatever else it offers', async () => {
    const pair = sshKeys('ecdsa', { bits: 256 })
    await using server = await start({ authenticate: accepting(publicBytes(pair.public)) })
    expect(await server.probe({}, { private_key: pair.private, password: 'unused-word' })).toContain('signed in')
  })
})

describe('a server with old algorithms only', () => {
  test.each<[string, ServerConfig['algorithms']]>([
    ['key exchange', { kex: ['diffie-hellman-group14-sha1'] }],
    ['ciphers', { cipher: ['aes128-cbc'] }],
    ['MACs', { cipher: ['aes128-ctr'], hmac: ['hmac-md5'] }],
  ])('of %s is left, and reached if the destination permits them', async (_, algorithms) => {
    await using server = await start({ algorithms })
    const error = await failure(server.probe())
    expect(error).toMatchObject({
      code: 'handshake_failed',
      permanent: false,
      message: expect.stringContaining('algorithms: legacy') as string,
    })
    expect(await server.probe({ algorithms: 'legacy' })).toContain('signed in')
  })

  test('is not offered them after the better ones if it has those', async () => {
    await using server = await start({ algorithms: { cipher: { append: ['aes128-cbc'], prepend: [], remove: [] } } })
    expect(await server.probe({ algorithms: 'legacy' })).toContain('signed in')
  })
})

describe('an account without SFTP', () => {
  test('is told apart from a server that cannot be reached', async () => {
    await using server = await start({ onSession: (session) => void session.on('sftp', (_accept, reject) => reject()) })
    const error = await failure(server.probe())
    expect(error).toMatchObject({ code: 'sftp_unavailable', message: expect.stringContaining('subsystem request failed') as string })
  })

  test('that prints text when it signs in is told so', async () => {
    await using server = await start({
      onSession: (session) =>
        void session.on('subsystem', (accept) => {
          accept().write('Welcome to the partner portal\n')
        }),
    })
    const error = await failure(server.probe())
    expect(error).toMatchObject({ code: 'sftp_unavailable' })
    expect(error.message).toMatch(/sent text instead of SFTP, which begins with "Welc".*must produce no output/)
  })
})
