import { createDownloadLinks, createDownloadUrl } from '../../src/security/download-link.ts'

const [old, fresh] = ['old', 'new'].map((id, index) => `${id}:${Buffer.alloc(32, index + 1).toString('base64')}`) as [string, string]
const download = {
  workspaceId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  documentId: '01BX5ZZKBKACTAV9WEVGEMMVRZ',
  expiresAt: new Date('2026-12-01T00:00:00.000Z'),
}
const signatureOf = (keys: string[]) => new URL(createDownloadLinks(keys).pathOf(download), 'http://relay').searchParams.get('signature')!

test('a link is verified as long as its key is in the ring, wherever it stands there', () => {
  const signature = signatureOf([old])
  expect(createDownloadLinks([old]).verify(download, signature)).toBe(true)
  expect(createDownloadLinks([fresh, old]).verify(download, signature)).toBe(true)
  expect(createDownloadLinks([fresh]).verify(download, signature)).toBe(false)
})

test('the first key signs', () => {
  expect(signatureOf([fresh, old])).toBe(signatureOf([fresh]))
  expect(signatureOf([fresh, old])).not.toBe(signatureOf([old]))
})

test.each([
  [{ workspaceId: '01ARZ3NDEKTSV4RRFFQ69G5FAW' }],
  [{ documentId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
  [{ expiresAt: new Date('2026-12-01T00:00:00.001Z') }],
  [{ workspaceId: download.documentId, documentId: download.workspaceId }],
])('a signature is good for nothing else: %j', (changed) => {
  expect(createDownloadLinks([old]).verify({ ...download, ...changed }, signatureOf([old]))).toBe(false)
})

test.each(['', 'x', 'A'.repeat(43), '\u0000'])('the signature %j is none', (signature) => {
  expect(createDownloadLinks([old]).verify(download, signature)).toBe(false)
})

test('without a base URL there is no link', () => {
  const links = createDownloadLinks([old])
  expect(createDownloadUrl(links, { baseUrl: undefined, ttlMs: 1_000 })('W', 'D')).toBeUndefined()
  expect(createDownloadUrl(links, { baseUrl: 'https://relay.example/', ttlMs: 1_000 })('W', 'D')).toMatch(
    /^https:\/\/relay\.example\/download\/W\/D\?expires=\d{13}&signature=[\w-]{43}$/,
  )
})
