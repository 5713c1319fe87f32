import { share } from '../support/share.ts'
import type { SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { startClaimingServer, told } from './claiming-server.ts'
import { startMigration } from './migration.ts'

// What an old content server says about its documents in the headers of the parts of info, which no HTTP library has looked at.

const [migration, server] = await Promise.all([startMigration().then(share), startClaimingServer().then(share)])
const { source, set, workspaceId } = await migration.open()
await set({ url: server.url, cont_rep: 'Z1' })

/** What the server says, and the content type that the relay answers with. */
const said: Record<string, [lines: string[], contentType: string]> = {
  'a content type with NUL': [['Content-Type: text/plain\0; a=b'], 'application/octet-stream'],
  'a content type with an escape sequence': [['Content-Type: text/plain; a="\u001b[2J"'], 'application/octet-stream'],
  'a content type of 20 KB': [[`Content-Type: text/plain; a=${'x'.repeat(20_000)}`], 'application/octet-stream'],
  'a content type of another alphabet': [
    ['Content-Type: text/plain; name="Анна.txt"'],
    Buffer.from('text/plain; name="Анна.txt"').toString('latin1'),
  ],
  'a year of six digits': [['Content-Type: text/plain', 'X-compDateC: +200000-01-01', 'X-compTimeC: 00:00:00'], 'text/plain'],
  'a year before the first one': [['Content-Type: text/plain', 'X-compDateC: -000100-01-01', 'X-compTimeC: 00:00:00'], 'text/plain'],
  'the year 0': [['Content-Type: text/plain', 'X-compDateC: 0000-01-01', 'X-compTimeC: 00:00:00'], 'text/plain'],
  'a status with NUL': [['Content-Type: text/plain', 'X-compStatus: on\0line'], 'text/plain'],
}

test.each(Object.entries(said))('%s: the document is answered, and kept', async (what, [infoType, contentType]) => {
  const docId = `D${Object.keys(said).indexOf(what)}`
  server.documents.set(docId, { data: { infoSize: told(5), infoType, bytes: Buffer.from('hello'), framing: 'length' } })
  const shown = ({ status, headers, body }: SourceAnswer) => [status, headers['content-type'], String(body)]
  expect((await source.info(docId)).status).toBe(200)
  expect(shown(await source.head(docId))).toEqual([200, contentType, ''])
  expect(shown(await source.get(docId))).toEqual([200, contentType, 'hello'])
  await until(
    'it is kept',
    () => migration.scene.db('documents').where({ workspace_id: workspaceId, doc_id: docId }),
    (rows) => rows.length === 1,
  )
  expect(shown(await source.get(docId))).toEqual([200, contentType, 'hello'])
  expect((await source.docGet(docId)).status).toBe(200)
})
