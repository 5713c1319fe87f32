import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { sftp } from '../../src/connectors/sftp.ts'
import { fingerprintBytes } from '../../src/connectors/sftp-session.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { startPlainSftpServer, type PlainSftpServer } from '../support/plain-sftp-server.ts'
import { startSshd, type Sshd } from '../support/sshd.ts'
import { contextOf, failure, parcelOf } from './parcels.ts'

let outbound: OutboundGuard
beforeAll(() => {
  outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
})
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

  test('takes the pinned host key in each of its forms, and any where none is pinned', async () => {
    const bytes = fingerprintBytes(server.hostKeyFingerprint)
    const colons = bytes.toString('hex').match(/../g)!.join(':')
    for (const pin of [undefined, server.hostKeyFingerprint, server.hostKeyFingerprint.slice(7), bytes.toString('hex'), colons]) {
      await expect(sftp.probe(target(pin === undefined ? {} : { host_key_sha256: pin }), contextOf(outbound))).resolves.toBeUndefined()
    }
  })

  test('stops at another host key, for good, and names the one it saw', async () => {
    const pin = `SHA256:${randomBytes(32).toString('base64').replace(/=+$/, '')}`
    const attempt = sftp.deliver(parcelOf(Buffer.from('x')), target({ host_key_sha256: pin }), contextOf(outbound))
    await expect(attempt).rejects.toMatchObject({
      code: 'host_key_mismatch',
      permanent: true,
      message: expect.stringContaining(server.hostKeyFingerprint) as string,
    })
  })

  test('puts documents under an absolute folder as well', async () => {
    const directory = join(server.directory, 'absolute')
    await mkdir(directory)
    const receipt = await sftp.deliver(parcelOf(Buffer.from('x'), { path: 'a/b' }), target({ directory }), contextOf(outbound))
    expect(receipt.path).toBe(`sftp://127.0.0.1:${server.port}${directory}/a/b`)
    expect(await readFile(join(directory, 'a/b'), 'utf8')).toBe('x')
  })

  test('several deliveries into a folder that is not there yet do not get into each other’s way', async () => {
    const parcels = Array.from({ length: 5 }, (_, index) => parcelOf(Buffer.from(`${index}`), { path: `new/deep/folder/${index}` }))
    await Promise.all(parcels.map((parcel) => sftp.deliver(parcel, target(), contextOf(outbound))))
    expect(await readdir(join(server.directory, 'new/deep/folder'))).toHaveLength(5)
  })

  test('an attempt writes over what an earlier one left behind', async () => {
    const parcel = parcelOf(Buffer.from('whole'), { path: 'again' })
    await writeFile(join(server.directory, `.again.${parcel.deliveryId}.part`), 'much more than the whole of it')
    await sftp.deliver(parcel, target(), contextOf(outbound))
    expect(await readFile(join(server.directory, 'again'), 'utf8')).toBe('whole')
    expect(await readdir(server.directory)).not.toContain(`.again.${parcel.deliveryId}.part`)
  })

  test.each(['../outside', 'a/../../outside', '/etc/outside', 'a//b', 'a/./b', '', 'a\0b', 'a\nb'])('refuses the path %j', async (path) => {
    const attempt = sftp.deliver(parcelOf(Buffer.from('x'), { path }), target(), contextOf(outbound))
    await expect(attempt).rejects.toMatchObject({ code: 'path_refused', permanent: true })
  })

  test('a file where a folder is needed fails without harm to it', async () => {
    await writeFile(join(server.directory, 'occupied'), 'kept')
    await expect(sftp.deliver(parcelOf(Buffer.from('x'), { path: 'occupied/b' }), target(), contextOf(outbound))).rejects.toMatchObject({
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
  const target = (password = 's3cret-word') => ({
    config: sftp.config.parse({ host: '127.0.0.1', port: server.port }),
    credentials: sftp.credentials.parse({ username: 'relay', password }),
  })

  test('renames after taking away what had the name before', async () => {
    const parcel = parcelOf(randomBytes(300_000), { path: 'a.pdf' })
    await sftp.deliver(parcel, target(), contextOf(outbound))
    await sftp.deliver(parcel, target(), contextOf(outbound))
    const part = `.a.pdf.${parcel.deliveryId}.part`
    expect([...server.files.keys()]).toEqual(['a.pdf'])
    expect(server.files.get('a.pdf')).toHaveLength(300_000)
    expect(server.calls).toEqual([`rename ${part} a.pdf`, 'remove a.pdf', `rename ${part} a.pdf`])
  })

  test('gives up for good on a wrong password, and does not show it', async () => {
    const error: unknown = await sftp.probe(target('wrong-word'), contextOf(outbound)).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
    expect(String(error)).not.toContain('wrong-word')
  })

  test('does not show a password that the server sends back', async () => {
    server.forbid(ssh2.utils.sftp.STATUS_CODE.FAILURE, 's3cret-word is what you said')
    const error = await failure(sftp.deliver(parcelOf(Buffer.from('x'), { path: 'a.pdf' }), target(), contextOf(outbound)))
    expect(error).toMatchObject({ code: 'sftp_failure', message: '[REDACTED] is what you said' })
  })

  test('gives up for good where it may not write', async () => {
    server.forbid()
    const attempt = sftp.deliver(parcelOf(Buffer.from('x'), { path: 'a.pdf' }), target(), contextOf(outbound))
    await expect(attempt).rejects.toMatchObject({ code: 'permission_denied', permanent: true })
  })
})

describe('the settings of sftp', () => {
  test.each([
    [{ host: 'user@host' }],
    [{ host: 'a b' }],
    [{ host: 'host/path' }],
    [{ port: 0 }],
    [{ port: 70_000 }],
    [{ directory: 'a\nb' }],
    [{ host_key_sha256: 'SHA256:short' }],
    [{ host_key_sha256: 'a'.repeat(60) }],
  ])('refuse the config %j', (config) => {
    expect(sftp.config.safeParse({ host: 'example.com', ...config }).success).toBe(false)
  })

  test('refuse credentials that cannot work, before anything is sent', () => {
    const key = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256, passphrase: 'right', cipher: 'aes256-cbc', rounds: 16 }).private
    const fits = (credentials: object) => sftp.credentials.safeParse({ username: 'relay', ...credentials }).success
    expect(fits({ private_key: key, passphrase: 'right' })).toBe(true)
    expect(fits({ private_key: key, passphrase: 'wrong' })).toBe(false)
    expect(fits({ private_key: key })).toBe(false)
    expect(fits({ private_key: 'no key' })).toBe(false)
    expect(fits({ private_key: key, passphrase: 'right', password: 'x' })).toBe(false)
    expect(fits({})).toBe(false)
    expect(fits({ password: 'x', passphrase: 'y' })).toBe(false)
  })
})
