import { newId } from '../../src/base/ids.ts'
import { batchWorkflowId, bulkRetryWorkflowId, deliveryWorkflowId, documentWorkflowId, noticeWorkflowId } from '../../workflows/ids.ts'

const document = {
  documentId: '01JDY7Q5ZB3N1VW8T2K4M6R9XA',
  workspace: 'acme/invoices',
  repoId: 'Z1',
  docId: '4711',
  compId: 'data',
}
const documentPath = 'document/acme/invoices/Z1/4711/data/01JDY7Q5ZB3N1VW8T2K4M6R9XA'

test('workflow ids consist of the names that operators know, and an id', () => {
  expect(documentWorkflowId(document)).toBe(documentPath)
  expect(documentWorkflowId(document, 3)).toBe(`${documentPath}@3`)
  expect(deliveryWorkflowId(document, '01JDESTINATION')).toBe(`${documentPath}/01JDESTINATION`)
  expect(batchWorkflowId({ action: 'release', workspace: 'acme/invoices', id: 'C1' })).toBe('release-deliveries/acme/invoices/C1')
  expect(batchWorkflowId({ action: 'cancel', workspace: 'acme/invoices', id: 'D1' })).toBe('cancel-deliveries/acme/invoices/D1')
  expect(bulkRetryWorkflowId({ workspace: 'acme/invoices', bulkRetryId: 'B1' })).toBe('bulk-retry/acme/invoices/B1')
  expect(noticeWorkflowId({ workspace: 'acme/invoices', noticeId: 'N1' })).toBe('notice/acme/invoices/N1')
})

test.each([
  ['a slash', 'a/b', 'a%2Fb'],
  ['a percent sign', '100%', '100%25'],
  ['a line feed', 'a\nb', 'a%0Ab'],
  ['an invisible character', 'a\u200Bb', 'a%E2%80%8Bb'],
  ['a space', 'invoice 1.pdf', 'invoice 1.pdf'],
  ['letters of any alphabet', 'Rechnung-Ü-請求書', 'Rechnung-Ü-請求書'],
])('a component name with %s remains one segment', (_, compId, segment) => {
  expect(documentWorkflowId({ ...document, compId })).toBe(documentPath.replace('/data/', `/${segment}/`))
})

test.each(['a', 'é', '語', '😀', '/', '\u200B'])(
  'workflow ids with the longest names, of the character %j, stay below the 1,000 bytes that Temporal accepts',
  (character) => {
    const longest = {
      documentId: newId(),
      workspace: `${'u'.repeat(63)}/${'w'.repeat(63)}`,
      repoId: '/'.repeat(64),
      docId: 'D'.repeat(128),
      compId: character.repeat(Math.floor(255 / Buffer.byteLength(character))),
    }
    const id = deliveryWorkflowId(longest, newId())
    expect(Buffer.byteLength(id)).toBeLessThanOrEqual(768)
    expect(id.isWellFormed()).toBe(true)
    expect(id).toContain(`/${longest.documentId}/`)
  },
)
