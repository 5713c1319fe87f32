import { parse } from 'node:querystring'
import { createDownloadLinks, createDownloadUrl } from '../../src/security/download-link.ts'

const [oldKey, newKey] = ['old', 'new'].map((id, index) => `${id}:${Buffer.alloc(32, index + 1).toString('base64')}`) as [string, string]
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const download = {
  workspaceId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  documentId: '01BX5ZZKBKACTAV9WEVGEMMVRZ',
  destinationId: '01BX5ZZKBKACTAV9WEVGEMMVS0',
  version: 3,
  expiresAt: new Date('2026-12-01T00:00:00.000Z'),
}
const linkOf = (keys: string[], of = download) => createDownloadLinks(keys).pathOf(of)
const signatureOf = (keys: string[]) => new URL(linkOf(keys), 'http://relay').searchParams.get('signature')!

/** Reads a link as the server does: a parameter that occurs twice is an array. */
const read = (keys: string[], link: string) => {
  const { pathname, search } = new URL(link, 'http://relay')
  return createDownloadLinks(keys).read(pathname, parse(search.slice(1)))
}

test('a link is valid as long as its key is in the ring, at any position', () => {
  const link = linkOf([oldKey])
  expect(read([oldKey], link)).toEqual(download)
  expect(read([newKey, oldKey], link)).toEqual(download)
  expect(read([newKey], link)).toBeUndefined()
})

test('the first key signs', () => {
  expect(signatureOf([newKey, oldKey])).toBe(signatureOf([newKey]))
  expect(signatureOf([newKey, oldKey])).not.toBe(signatureOf([oldKey]))
})

test.each([
  [{ workspaceId: '01ARZ3NDEKTSV4RRFFQ69G5FAW' }],
  [{ documentId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
  [{ destinationId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
  [{ version: 4 }],
  [{ expiresAt: new Date('2026-12-01T00:00:00.001Z') }],
  [{ workspaceId: download.documentId, documentId: download.workspaceId }],
])('a signature is not valid for a link with %j', (changed) => {
  const link = linkOf([oldKey], { ...download, ...changed }).replace(/signature=.*/, `signature=${signatureOf([oldKey])}`)
  expect(read([oldKey], link)).toBeUndefined()
})

test.each(['', 'x', 'A'.repeat(43), '%00'])('the signature %j is invalid', (signature) => {
  expect(read([oldKey], linkOf([oldKey]).replace(/signature=.*/, `signature=${signature}`))).toBeUndefined()
})

test('a link has exactly one form', () => {
  const link = linkOf([oldKey])
  const expires = String(download.expiresAt.getTime())
  const others = [
    ...[
      `0x${download.expiresAt.getTime().toString(16)}`,
      `${expires}.0`,
      `0${expires}`,
      `+${expires}`,
      `${expires}%20`,
      '1.7961984e12',
    ].map((text) => link.replace(expires, text)),
    link.replace('version=3', 'version=3.0'),
    link.replace('version=3', 'version=03'),
    `${link}=`,
    `${link}%3D`,
    `${link}&more=1`,
    `${link}&expires=${expires}`,
    // Another last character that decodes to the same bytes.
    link.replace(/.$/, (last) => alphabet[alphabet.indexOf(last) ^ 1]!),
    link.replace('/download/', '/download//'),
    link.replace('?', '/?'),
  ]
  for (const other of others) expect([other, read([oldKey], other)]).toEqual([other, undefined])
})

test('no link is created without a base URL', () => {
  const links = createDownloadLinks([oldKey])
  expect(createDownloadUrl(links, { baseUrl: undefined, ttlMs: 1_000 })(download)).toBeUndefined()
  expect(createDownloadUrl(links, { baseUrl: 'https://relay.example/', ttlMs: 1_000 })(download)).toMatch(
    /^https:\/\/relay\.example\/download\/\w{26}\/\w{26}\/\w{26}\?expires=\d{13}&version=3&signature=[\w-]{43}$/,
  )
})
