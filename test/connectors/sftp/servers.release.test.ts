import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import ssh2 from 'ssh2'
import type { Payload } from '../../../src/connectors/connector.ts'
import { sftp } from '../../../src/connectors/sftp/index.ts'
import { fingerprintBytes } from '../../../src/connectors/sftp/session.ts'
import { partFileName } from '../../../src/connectors/shared/target-path.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startPlainSftpServer, type PlainSftpServer } from '../../support/plain-sftp-server.ts'
import { startSshd, type Sshd } from '../../support/sshd.ts'
import { until } from '../../support/until.ts'
import { contextOf, failing, failure, largePayload, MiB, payloadOf, watched } from '../payloads.ts'

const { STATUS_CODE } = ssh2.utils.sftp
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())

describe('sftp to OpenSSH', () => {
  let server: Sshd
  beforeAll(async () => {
    server = await startSshd()
  })
  afterAll(() => server.stop())
  const target = (config: object = {}) => ({
    config: sftp.config.parse({ host: '127.0.0.1', port: server.port, ...config }),
    credentials: sftp.credentials.parse({ username: server.username, private_key: server.privateKey }),
  })

  test('accepts the pinned host key in each of its forms, and pins the key that it gets if none is pinned', async () => {
    const bytes = fingerprintBytes(server.hostKeyFingerprint)
    const colons = bytes.toString('hex').match(/../g)!.join(':')
    for (const pin of [undefined, server.hostKeyFingerprint, server.hostKeyFingerprint.slice(7), bytes.toString('hex'), colons]) {
      const pinned: object[] = []
      const context = contextOf(outbound, { pin: (values) => void pinned.push(values) })
      const message = await sftp.probe(target(pin === undefined ? {} : { host_key_sha256: pin }), context)
      expect(message).toContain(server.hostKeyFingerprint)
      expect(pinned).toEqual(pin === undefined ? [{ host_key_sha256: server.hostKeyFingerprint }] : [])
    }
  })

  test('another host key is a permanent failure that names the actual key', async () => {
    const pin = `SHA256:${randomBytes(32).toString('base64').replace(/=+$/, '')}`
    const attempt = sftp.deliver(payloadOf(Buffer.from('x')), target({ host_key_sha256: pin }), contextOf(outbound))
    await expect(attempt).rejects.toMatchObject({
      code: 'host_key_mismatch',
      permanent: true,
      message: expect.stringContaining(server.hostKeyFingerprint) as string,
    })
  })

  test('an absolute directory is possible', async () => {
    const directory = join(server.directory, 'absolute')
    await mkdir(directory)
    const result = await sftp.deliver(payloadOf(Buffer.from('x'), { path: 'a/b' }), target({ directory }), contextOf(outbound))
    expect(result.path).toBe(`sftp://127.0.0.1:${server.port}${directory}/a/b`)
    expect(await readFile(join(directory, 'a/b'), 'utf8')).toBe('x')
  })

  test('several deliveries into a new folder do not disturb each other', async () => {
    const payloads = Array.from({ length: 5 }, (_, index) => payloadOf(Buffer.from(`${index}`), { path: `new/deep/folder/${index}` }))
    await Promise.all(payloads.map((payload) => sftp.deliver(payload, target(), contextOf(outbound))))
    expect(await readdir(join(server.directory, 'new/deep/folder'))).toHaveLength(5)
  })

  test('an attempt overwrites the temporary file of an earlier one', async () => {
    const payload = payloadOf(Buffer.from('whole'), { path: 'again' })
    await writeFile(join(server.directory, partFileName('again', payload.deliveryId)), 'much more than the whole of it')
    await sftp.deliver(payload, target(), contextOf(outbound))
    expect(await readFile(join(server.directory, 'again'), 'utf8')).toBe('whole')
    expect(await readdir(server.directory)).not.toContain(partFileName('again', payload.deliveryId))
  })

  test.each(['../outside', 'a/../../outside', '/etc/outside', 'a//b', 'a/./b', '', 'a\0b', 'a\nb'])('refuses the path %j', async (path) => {
    const attempt = sftp.deliver(payloadOf(Buffer.from('x'), { path }), target(), contextOf(outbound))
    await expect(attempt).rejects.toMatchObject({ code: 'path_refused', permanent: true })
  })

  test('a file in place of a folder fails the delivery and stays unchanged', async () => {
    await writeFile(join(server.directory, 'occupied'), 'kept')
    await expect(sftp.deliver(payloadOf(Buffer.from('x'), { path: 'occupied/b' }), target(), contextOf(outbound))).rejects.toMatchObject({
      code: 'sftp_failure',
    })
    expect(await readFile(join(server.directory, 'occupied'), 'utf8')).toBe('kept')
  })
})

describe('sftp to a server without extensions', () => {
  let server: PlainSftpServer
  beforeEach(async () => {
    server = await startPlainSftpServer('s3cret-word')
  })
  afterEach(() => server.stop())
  const target = (password = 's3cret-word', config: object = {}) => ({
    config: sftp.config.parse({ host: '127.0.0.1', port: server.port, ...config }),
    credentials: sftp.credentials.parse({ username: 'relay', password }),
  })
  const inPlace = () => target('s3cret-word', { write: 'in_place' })

  test('a file is renamed after an existing file of that name was removed', async () => {
    const payload = payloadOf(randomBytes(300_000), { path: 'a.pdf' })
    await sftp.deliver(payload, target(), contextOf(outbound))
    await sftp.deliver(payload, target(), contextOf(outbound))
    const part = partFileName('a.pdf', payload.deliveryId)
    expect([...server.files.keys()]).toEqual(['a.pdf'])
    expect(server.files.get('a.pdf')).toHaveLength(300_000)
    expect(server.calls).toEqual([`rename ${part} a.pdf`, 'remove a.pdf', `rename ${part} a.pdf`])
  })

  test.each([STATUS_CODE.PERMISSION_DENIED, STATUS_CODE.FAILURE, STATUS_CODE.OP_UNSUPPORTED])(
    'a file that may not be replaced (status %i) is read: the same content is delivered, and no other one',
    async (code) => {
      const payload = payloadOf(randomBytes(100_000), { path: 'a.pdf', properties: { Vendor: 'Acme' } })
      await sftp.deliver(payload, target(), contextOf(outbound))
      server.keepFiles(code)

      await sftp.deliver({ ...payload, attempt: 2 }, target(), contextOf(outbound))
      expect([...server.files.keys()]).toEqual(['a.pdf.meta.json', 'a.pdf'])

      for (const bytes of [randomBytes(100_000), randomBytes(100_001)]) {
        const other = { ...payloadOf(bytes), deliveryId: payload.deliveryId, path: payload.path }
        const error = await failure(sftp.deliver(other, target(), contextOf(outbound)))
        expect(error.message).toMatch(/another document, or an earlier content of this one, is stored under its name$/)
        expect(server.files.get('a.pdf')).toEqual(await buffer(payload.open()))
        expect([...server.files.keys()]).toEqual(['a.pdf.meta.json', 'a.pdf'])
      }

      server.forbidReading()
      const error = await failure(sftp.deliver({ ...payload, attempt: 2 }, target(), contextOf(outbound)))
      expect(error.message).toMatch(/An earlier attempt may have stored the document.*may not read the file$/)
    },
  )

  test.each([STATUS_CODE.NO_SUCH_FILE, STATUS_CODE.FAILURE, STATUS_CODE.PERMISSION_DENIED, STATUS_CODE.OP_UNSUPPORTED])(
    'a rename that was made and is answered with the status %i is no failure, and one that was not made is',
    async (code) => {
      server.failRenames(code, true)
      await sftp.deliver(payloadOf(randomBytes(100_000), { path: 'a.pdf' }), target(), contextOf(outbound))
      expect([...server.files.keys()]).toEqual(['a.pdf'])
      server.files.clear()
      server.failRenames(code, false)
      await failure(sftp.deliver(payloadOf(randomBytes(100_000), { path: 'a.pdf' }), target(), contextOf(outbound)))
      expect([...server.files.keys()]).toEqual([])
    },
  )

  test('a server that takes a file when it is closed gets each document once, under its name, if files are written in place', async () => {
    server.takeClosedFiles()
    const payload = payloadOf(randomBytes(300_000), { path: 'a.pdf', properties: { Vendor: 'Acme' } })
    // By default, it takes the hidden file, and the relay does not know whether that was the document.
    expect(await failure(sftp.deliver(payload, target(), contextOf(outbound)))).toMatchObject({ code: 'sftp_failure' })
    server.taken.length = 0

    const result = await sftp.deliver(payload, inPlace(), contextOf(outbound))
    expect(result).toMatchObject({ path: `sftp://127.0.0.1:${server.port}/~/a.pdf`, bytesSent: 300_000 })
    expect(server.taken.map(({ path }) => path)).toEqual(['a.pdf.meta.json', 'a.pdf'])
    expect(server.taken[1]!.content).toEqual(await buffer(payload.open()))
    expect(await sftp.probe(inPlace(), contextOf(outbound))).toMatch(
      /wrote the file relay-test-\w+\.txt in the folder \., and the server has taken it\./,
    )
  })

  test('a server that permits no rename and no name with a dot gets documents in place, and a test shows that it needs it', async () => {
    server.failRenames(STATUS_CODE.PERMISSION_DENIED, false)
    expect(await failure(sftp.probe(target(), contextOf(outbound)))).toMatchObject({ code: 'permission_denied' })
    server.forbidDots()
    expect(await sftp.probe(inPlace(), contextOf(outbound))).toContain('wrote a file in the folder . and removed it.')
    await sftp.deliver(payloadOf(Buffer.from('x'), { path: 'a.pdf' }), inPlace(), contextOf(outbound))
    expect([...server.files.keys()]).toEqual(['a.pdf'])
  })

  test('in place, a longer earlier file is replaced, and a document that breaks off leaves none', async () => {
    server.files.set('a.pdf', randomBytes(500_000))
    const payload = payloadOf(randomBytes(300_000), { path: 'a.pdf' })
    await sftp.deliver(payload, inPlace(), contextOf(outbound))
    expect(server.files.get('a.pdf')).toEqual(await buffer(payload.open()))

    const broken = failing({ ...largePayload(2 * MiB), path: 'a.pdf' }, MiB)
    expect(await failure(sftp.deliver(broken, inPlace(), contextOf(outbound)))).toMatchObject({ code: 'content_unreadable' })
    expect([...server.files.keys()]).toEqual([])
  })

  test('in place, a file that may not be replaced is read: the same content is delivered, and no other one', async () => {
    const payload = payloadOf(randomBytes(100_000), { path: 'a.pdf', properties: { Vendor: 'Acme' } })
    await sftp.deliver(payload, inPlace(), contextOf(outbound))
    server.keepFiles(STATUS_CODE.PERMISSION_DENIED)
    await sftp.deliver({ ...payload, attempt: 2 }, inPlace(), contextOf(outbound))
    const other = payloadOf(randomBytes(100_000), { path: 'a.pdf' })
    expect(await failure(sftp.deliver(other, inPlace(), contextOf(outbound)))).toMatchObject({ code: 'permission_denied' })
    expect(server.files.get('a.pdf')).toEqual(await buffer(payload.open()))
  })

  test.each<number | 'untyped'>([STATUS_CODE.PERMISSION_DENIED, STATUS_CODE.FAILURE, STATUS_CODE.OP_UNSUPPORTED, 10, 99, 'untyped'])(
    'a server that answers each stat with %s gets documents, in folders that exist and that do not',
    async (answer) => {
      const missing = answer === 10
      if (!missing) server.answerStats(answer)
      for (const attempt of [1, 2]) {
        const payload = { ...payloadOf(Buffer.from(`${attempt}`), { path: 'new/deep/a.pdf' }), deliveryId: 'D', attempt }
        await sftp.deliver(payload, target(), contextOf(outbound))
        await sftp.deliver({ ...payload, path: 'in-place.pdf' }, inPlace(), contextOf(outbound))
        expect(server.files.get('new/deep/a.pdf')).toEqual(Buffer.from(`${attempt}`))
      }
      expect([...server.folders]).toEqual(['.', 'new', 'new/deep'])
      expect(await sftp.probe(target(), contextOf(outbound))).toContain('wrote a file')
      expect([...server.folders]).toEqual(['.', 'new', 'new/deep'])
    },
  )

  test('a folder that can neither be seen nor created is the error', async () => {
    server.answerStats(STATUS_CODE.FAILURE)
    server.forbidFolders(STATUS_CODE.PERMISSION_DENIED)
    const error = await failure(sftp.deliver(payloadOf(Buffer.from('x'), { path: 'new/a.pdf' }), target(), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'permission_denied', message: expect.stringContaining('creation of the folder new: ') as string })
    expect([...server.files.keys()]).toEqual([])
  })

  test('a test fails where a delivery would fail because it creates a folder, and says so in place', async () => {
    server.forbidFolders(STATUS_CODE.PERMISSION_DENIED)
    expect(await failure(sftp.probe(target(), contextOf(outbound)))).toMatchObject({
      code: 'permission_denied',
      message: expect.stringContaining('creation of the folder .relay-') as string,
    })
    expect(await sftp.probe(inPlace(), contextOf(outbound))).toContain('cannot create folders, so path_template must name none')
    server.forbidReading()
    expect(await sftp.probe(inPlace(), contextOf(outbound))).toContain('cannot read the file')
    expect([...server.files.keys()]).toEqual([])
  })

  test.each([
    [STATUS_CODE.FAILURE, 'Failure', 'sftp_failure'],
    [14, 'No space on the file system', 'storage_full'],
    [15, 'Quota exceeded', 'storage_full'],
    [17, 'Locked by another program', 'sftp_failure'],
  ])("the error of a rename names both paths and the server's word: status %i", async (status, word, code) => {
    server.failRenames(status, false)
    const payload = payloadOf(Buffer.from('x'), { path: 'a.pdf' })
    const error = await failure(sftp.deliver(payload, target(), contextOf(outbound)))
    expect(error).toMatchObject({
      code,
      permanent: false,
      message: `rename of ${partFileName('a.pdf', payload.deliveryId)} to a.pdf: ${word} (${status})`,
    })
  })

  test.each<[string, string, boolean]>([
    ['Permission denied', 'permission_denied', true],
    ['Access is denied.', 'permission_denied', true],
    ['Permission denied: disk quota exceeded', 'storage_full', false],
    ['There is not enough space on the disk.', 'storage_full', false],
    ['The process cannot access the file because it is being used by another process.', 'sftp_failure', false],
    ['File is locked by another session', 'sftp_failure', false],
    ['Too many open files, try again later', 'sftp_failure', false],
  ])('a server that has one status for all refusals is taken at its word: %s', async (word, code, permanent) => {
    server.forbid(STATUS_CODE.PERMISSION_DENIED, word)
    const error = await failure(sftp.deliver(payloadOf(Buffer.from('x'), { path: 'quota/a.pdf' }), target(), contextOf(outbound)))
    expect(error).toMatchObject({ code, permanent })
  })

  describe('an upload that has failed', () => {
    const size = 12 * MiB
    const attempt = async (payload: Payload, saved?: unknown, signal?: AbortSignal) => {
      let state: unknown
      const context = contextOf(outbound, { saved, save: (next) => (state = next), ...(signal && { signal }) })
      const error = await sftp.deliver(payload, target(), context).then(
        () => undefined,
        (thrown: unknown) => thrown as { code?: string },
      )
      return { saved: state, error }
    }
    const begin = async (payload: Payload) => {
      server.failWritesAfter(10 * MiB)
      const { saved, error } = await attempt(payload)
      expect(error).toMatchObject({ code: 'sftp_failure' })
      server.failWritesAfter(Infinity)
      return saved
    }

    test('goes on where the server is, and sends no byte twice', async () => {
      const payload = { ...largePayload(size), path: 'large.pdf' }
      const saved = await begin(payload)
      const { payload: seen, starts } = watched(payload)
      expect(await attempt(seen, saved)).toMatchObject({ error: undefined })
      expect(Math.max(...starts)).toBeGreaterThan(9 * MiB)
      expect(server.received.bytes).toBeLessThan(size * 1.2)
      expect(server.files.get('large.pdf')?.equals(await buffer(payload.open()))).toBe(true)
      expect([...server.files.keys()]).toEqual(['large.pdf'])
    })

    test('sends nothing again if only the rename was refused', async () => {
      const payload = { ...largePayload(size), path: 'large.pdf' }
      server.failRenames(STATUS_CODE.FAILURE, false)
      const first = await attempt(payload)
      const second = await attempt(payload, first.saved)
      expect(second.error).toMatchObject({ code: 'sftp_failure' })
      expect(server.received.bytes).toBe(size)
    })

    test.each<[string, (part: Buffer) => Buffer | undefined]>([
      ['has lost its end', (part) => part.subarray(0, 2 * MiB)],
      ['has other bytes at its end', (part) => Buffer.concat([part.subarray(0, part.length - MiB), Buffer.alloc(MiB)])],
      ['is gone', () => undefined],
    ])('begins again if the file %s', async (_, damage) => {
      const payload = { ...largePayload(size), path: 'large.pdf' }
      const saved = await begin(payload)
      const [name, part] = [...server.files.entries()][0]!
      const damaged = damage(part)
      if (damaged) server.files.set(name, damaged)
      else server.files.delete(name)
      expect(await attempt(payload, saved)).toMatchObject({ error: undefined })
      expect(server.files.get('large.pdf')?.equals(await buffer(payload.open()))).toBe(true)
    })

    test('leaves nothing if no later attempt can go on', async () => {
      const payload = { ...largePayload(size), path: 'large.pdf' }
      for (const code of [STATUS_CODE.PERMISSION_DENIED, 14]) {
        server.failWritesAfter(10 * MiB, code)
        expect((await attempt(payload)).error).toBeDefined()
        expect([...server.files.keys()]).toEqual([])
      }
      server.failWritesAfter(Infinity)
      expect(await attempt(failing(payload, 10 * MiB))).toMatchObject({ error: { code: 'content_unreadable' } })
      expect([...server.files.keys()]).toEqual([])
    })

    test('begins again at another server, and for a short document', async () => {
      const payload = { ...largePayload(size), path: 'large.pdf' }
      const saved = (await begin(payload)) as { part: string }
      await attempt(payload, { ...saved, part: 'sftp://other.example:22/~/x' })
      expect(server.received.bytes).toBeGreaterThan(size * 1.5)
      server.failWritesAfter(MiB)
      expect(await attempt({ ...largePayload(2 * MiB), path: 'short.pdf' })).toMatchObject({ saved: undefined })
      expect([...server.files.keys()]).toEqual(['large.pdf'])
    })
  })

  test('a wrong password is a permanent failure and is not shown', async () => {
    const error: unknown = await sftp.probe(target('wrong-word'), contextOf(outbound)).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
    expect(String(error)).not.toContain('wrong-word')
  })

  test('a password that the server echoes is not shown', async () => {
    server.forbid(ssh2.utils.sftp.STATUS_CODE.FAILURE, 's3cret-word is what you said')
    const error = await failure(sftp.deliver(payloadOf(Buffer.from('x'), { path: 'a.pdf' }), target(), contextOf(outbound)))
    expect(error).toMatchObject({
      code: 'sftp_failure',
      message: expect.stringMatching(/^open of \.relay-\w+\.part to write it: \[REDACTED\] is what you said \(4\)$/) as string,
    })
  })

  test('a missing write permission is a permanent failure', async () => {
    server.forbid()
    const attempt = sftp.deliver(payloadOf(Buffer.from('x'), { path: 'a.pdf' }), target(), contextOf(outbound))
    await expect(attempt).rejects.toMatchObject({ code: 'permission_denied', permanent: true })
  })
})

test('a server whose greeting never ends is left before the time limit', async () => {
  let isClosed = false
  const endless = createServer((socket) => {
    const pour = () => {
      while (socket.writable && socket.write('hello\r\n'.repeat(1_000)));
    }
    socket
      .on('error', () => {})
      .on('drain', pour)
      .on('close', () => {
        isClosed = true
      })
    pour()
  }).listen(0, '127.0.0.1')
  await once(endless, 'listening')
  const { port } = endless.address() as AddressInfo
  const target = {
    config: sftp.config.parse({ host: '127.0.0.1', port }),
    credentials: sftp.credentials.parse({ username: 'relay', password: 's3cret-word' }),
  }
  const error = await failure(sftp.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound)))
  expect(error).toMatchObject({ permanent: false })
  expect(error.code).not.toBe('timeout')
  await until('the connection is closed', () => isClosed)
  endless.close()
})

describe('the schema of sftp', () => {
  test.each([
    [{ host: 'user@host' }],
    [{ host: 'a b' }],
    [{ host: 'host/path' }],
    [{ port: 0 }],
    [{ port: 70_000 }],
    [{ write: 'append' }],
    [{ directory: 'a\nb' }],
    [{ host_key_sha256: 'SHA256:short' }],
    [{ host_key_sha256: 'a'.repeat(60) }],
  ])('refuses the config %j', (config) => {
    expect(sftp.config.safeParse({ host: 'example.com', ...config }).success).toBe(false)
  })

  test('refuses credentials that cannot work', () => {
    const key = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256, passphrase: 'right', cipher: 'aes256-cbc', rounds: 16 }).private
    const fits = (credentials: object) => sftp.credentials.safeParse({ username: 'relay', ...credentials }).success
    expect(fits({ private_key: key, passphrase: 'right' })).toBe(true)
    expect(fits({ private_key: key, passphrase: 'wrong' })).toBe(false)
    expect(fits({ private_key: key })).toBe(false)
    expect(fits({ private_key: 'no key' })).toBe(false)
    expect(fits({ private_key: key, passphrase: 'right', password: 'x' })).toBe(true)
    expect(fits({})).toBe(false)
    expect(fits({ password: 'x', passphrase: 'y' })).toBe(false)
  })
})
