import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readCertificate } from '../../src/security/certificate.ts'
import { integer, oid, sequence, setOf, tagged } from '../../src/security/der.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'
import { createFolder } from '../support/folder.ts'

const folder = await createFolder()
afterAll(() => folder[Symbol.asyncDispose]())
const openssl = (...command: string[]) => promisify(execFile)('openssl', command, { cwd: folder.path })

const issue = async (name: string, subject: string, issuer: string, extensions = '') => {
  await openssl('req', '-nodes', '-newkey', 'rsa:2048', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
  await writeFile(join(folder.path, 'extensions'), `${extensions}\n`)
  const signed = name === issuer ? ['-signkey', `${name}.key`] : ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial']
  await openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.pem`, '-days', '2', '-extfile', 'extensions', ...signed)
  return readFile(join(folder.path, `${name}.pem`), 'utf8')
}

const authority = 'basicConstraints=critical,CA:true'
const root = await issue('root', '/CN=A', 'root', authority)
const sub = await issue('sub', '/O=Company/CN=Sub', 'root', authority)
// Longer than its authorities, so DER sorts it behind them.
const system = await issue('system', '/C=DE/O=Company/OU=SAP Web AS/OU=I0099999999/CN=TST', 'sub', 'keyUsage=digitalSignature')
// An authority of other systems, which has nothing to do with the chain.
const other = await issue('other', '/CN=Other root', 'other', authority)

const permutations = <T>(items: T[]): T[][] =>
  items.length < 2 ? [items] : items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]))

const derOf = (pem: string) => new X509Certificate(pem).raw
const message = (pems: string[]) =>
  sequence(
    oid('1.2.840.113549.1.7.2'),
    tagged(0, sequence(integer(Buffer.from([1])), setOf(), sequence(oid('1.2.840.113549.1.7.1')), tagged(0, ...pems.map(derOf)), setOf())),
  )

const forms: Record<string, (pems: string[]) => Buffer> = {
  'a PKCS#7': message,
  'a PKCS#7 in base64': (pems) => Buffer.from(message(pems).toString('base64')),
  'a PKCS#7 in PEM': (pems) => Buffer.from(`-----BEGIN PKCS7-----\n${message(pems).toString('base64')}\n-----END PKCS7-----\n`),
  'a file of several PEM blocks': (pems) => Buffer.from(pems.join('')),
  'certificates one after another': (pems) => Buffer.concat(pems.map(derOf)),
}

describe.each(Object.entries(forms))('in %s', (_, form) => {
  test.each([
    ['the system and its authority', [system, sub]],
    ['the whole chain', [system, sub, root]],
    ['a chain with a gap', [system, root]],
    ['the chain and an authority of others', [system, sub, root, other]],
    ['the system and an authority of others', [system, other]],
    ['one certificate twice', [system, system, sub]],
  ])('the certificate of the signer is read from %s in every order', (__, pems) => {
    for (const order of permutations(pems)) expect(readCertificate(form(order))?.subject).toMatch(/CN=TST$/)
  })
})

test('a signed message names its signer, whatever certificates it brings', async () => {
  await writeFile(join(folder.path, 'text'), 'x')
  await writeFile(join(folder.path, 'more.pem'), system + root)
  await openssl(
    'cms',
    '-sign',
    '-in',
    'text',
    '-signer',
    'sub.pem',
    '-inkey',
    'sub.key',
    '-certfile',
    'more.pem',
    '-outform',
    'DER',
    '-out',
    's',
  )
  expect(readCertificate(await readFile(join(folder.path, 's')))?.subject).toBe('O=Company, CN=Sub')
})

test('of two certificates of a signer that was renewed, the one that is valid longer is read', async () => {
  const old = await createThrowAwayKey('rsa', 'TST', 1)
  const renewed = await createThrowAwayKey('rsa', 'TST', 3)
  for (const order of permutations([old.certificate, renewed.certificate])) {
    expect(readCertificate(Buffer.from(order.join('')))?.der).toEqual(derOf(renewed.certificate))
  }
})
