import * as fc from 'fast-check'
import { check } from '../support/properties.ts'
import { share } from '../support/share.ts'
import type { SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { framings, startClaimingServer, told, type Claim } from './claiming-server.ts'
import { startMigration } from './migration.ts'

const [migration, server] = await Promise.all([startMigration().then(share), startClaimingServer().then(share)])
const { source, set, workspaceId } = await migration.open()
await set({ url: server.url, cont_rep: 'Z1' })

let documents = 0
/** Puts a document there. @returns its docId */
const put = (components: Record<string, Claim>): string => {
  documents += 1
  server.documents.set(`D${documents}`, components)
  return `D${documents}`
}
/** Returns the answer, or undefined if it breaks off. */
const orBroken = (answer: Promise<SourceAnswer>): Promise<SourceAnswer | undefined> => answer.catch(() => undefined)

const reads = {
  get: (docId: string) => source.get(docId),
  docGet: (docId: string) => source.docGet(docId),
  HEAD: (docId: string) => source.head(docId),
  info: (docId: string) => source.info(docId),
  'a range': (docId: string) => source.get(docId, '&fromOffset=0&toOffset=4'),
  'a range behind the end': (docId: string) => source.get(docId, '&fromOffset=90000'),
  'an empty range': (docId: string) => source.get(docId, '&fromOffset=5&toOffset=2'),
  search: (docId: string) => source.search(docId, '&compId=data&pattern=PDF'),
  append: (docId: string) => source.append(docId, 'x'),
  update: (docId: string) => source.update(docId, 'x', { compId: 'note' }),
}

/** Returns the bytes of the only part of a docGet. */
const partOf = ({ body }: SourceAnswer): Buffer => {
  const text = body.toString('latin1')
  return Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4, text.lastIndexOf('\r\n--relay')), 'latin1')
}

const keptBytes = async (docId: string): Promise<number[]> =>
  (await migration.scene.db('documents').where({ workspace_id: workspaceId, doc_id: docId })).map((row: { size_bytes: string | number }) =>
    Number(row.size_bytes),
  )

const pdf = Buffer.alloc(20_000, '%PDF-1.7 ')

describe('a document that info calls empty, and of which get sends bytes', () => {
  const commands = Object.keys(reads) as (keyof typeof reads)[]
  test.each(commands.flatMap((command) => framings.map((framing) => [command, framing] as const)))(
    'is never answered: %s, %s',
    async (command, framing) => {
      const docId = put({ data: { infoSize: told(0), bytes: pdf, framing } })
      const answer = await reads[command](docId)
      expect([answer.status, answer.headers['x-errordescription']]).toEqual([503, expect.stringMatching(/^upstream_failed: upstream: /)])
      expect(await keptBytes(docId)).toEqual([])
    },
  )

  test.each(['get', 'HEAD', 'docGet', 'info'] as const)('is answered if get sends nothing either: %s', async (command) => {
    for (const framing of ['length', 'chunked', 'until closed'] as const) {
      const docId = put({ data: { infoSize: told(0), bytes: Buffer.alloc(0), framing } })
      const answer = await reads[command](docId)
      expect(answer.status).toBe(200)
      if (command === 'get')
        await until(
          'it is kept',
          () => keptBytes(docId),
          (kept) => kept.length === 1,
        )
    }
  })

  test('breaks the answer to docGet if another component has been sent', async () => {
    const large = Buffer.alloc(300_000, 'x')
    const docId = put({
      data: { infoSize: told(large.length), bytes: large, framing: 'length' },
      note: { infoSize: told(0), bytes: pdf, framing: 'chunked' },
    })
    expect(await orBroken(source.docGet(docId))).toBeUndefined()
    expect(await keptBytes(docId)).toEqual([])
  })

  test('is found out before docGet answers if the others are short', async () => {
    const docId = put({
      note: { infoSize: told(5), bytes: Buffer.from('hello'), framing: 'length' },
      data: { infoSize: told(0), bytes: pdf, framing: 'chunked' },
    })
    expect((await source.docGet(docId)).status).toBe(503)
  })
})

describe('a size that info does not tell', () => {
  const untold = [
    [],
    told(''),
    told('-1'),
    told('20e3'),
    told('0x10'),
    told('12, 20000'),
    [...told(12), ...told(20_000)],
    told('9'.repeat(16)),
  ]

  test.each(untold.map((infoSize) => [infoSize.join(' | ') || 'nothing', infoSize] as const))('is that of get: %s', async (_, infoSize) => {
    for (const command of ['get', 'docGet', 'HEAD', 'info', 'a range', 'search', 'append'] as const) {
      const answer = await reads[command](put({ data: { infoSize, bytes: pdf, framing: 'length' } }))
      expect(answer.status).toBe(200)
      if (command === 'get') expect(answer.body.equals(pdf)).toBe(true)
      if (command === 'docGet') expect(partOf(answer).equals(pdf)).toBe(true)
      if (command === 'HEAD') expect(answer.headers['content-length']).toBe(String(pdf.length))
      if (command === 'info') expect(String(answer.body)).toContain(`X-Content-Length: ${pdf.length}\r\n`)
    }
  })

  test('is a failure if get does not tell it either, or tells it with an encoding', async () => {
    const gzip = { headers: { 'content-encoding': 'gzip' } }
    for (const claim of [{ framing: 'chunked' }, { framing: 'until closed' }, { framing: 'length', ...gzip }] as const) {
      for (const command of ['get', 'docGet', 'HEAD', 'info', 'append'] as const) {
        expect((await reads[command](put({ data: { infoSize: [], bytes: pdf, ...claim } }))).status).toBe(503)
      }
    }
  })
})

test.each([
  ['another X-Content-Length', { 'x-content-length': '20001' }, 503],
  ['a Content-Encoding', { 'content-encoding': 'GZip' }, 503],
  ['a Content-Transfer-Encoding', { 'content-transfer-encoding': 'base64' }, 503],
  ['another component', { 'x-compid': 'note' }, 503],
  ['no encoding in so many words', { 'content-encoding': 'identity', 'content-transfer-encoding': 'BINARY' }, 200],
  ['the same X-Content-Length', { 'x-content-length': '20000' }, 200],
])('an answer to get with %s, although its length is right', async (_, headers, status) => {
  const docId = put({ data: { infoSize: told(pdf.length), bytes: pdf, framing: 'chunked', headers } })
  expect((await source.get(docId)).status).toBe(status)
})

test('a document without components is answered if get finds none', async () => {
  expect((await source.docGet(put({}))).status).toBe(200)
  expect((await source.info(put({}))).status).toBe(200)
  const hidden = { data: { infoSize: null, bytes: pdf, framing: 'chunked' } } as const
  expect((await source.docGet(put(hidden))).status).toBe(503)
  expect((await source.info(put(hidden))).status).toBe(503)
})

test('a component that is described twice is a failure', async () => {
  const data: Claim = {
    infoSize: [...told(5), 'X-compStatus: online', '', '', '--B', 'X-compId: data', ...told(5)],
    bytes: Buffer.from('hello'),
    framing: 'length',
  }
  expect((await source.get(put({ data }))).status).toBe(503)
})

test('a document of a right size is asked for twice: info and get', async () => {
  for (const command of ['get', 'a range', 'docGet'] as const) {
    const docId = put({ data: { infoSize: told(pdf.length), bytes: pdf, framing: 'chunked' } })
    expect((await reads[command](docId)).status).toBe(200)
    expect(server.requests.filter((request) => request.split(' ')[1] === docId).toSorted()).toEqual([`get ${docId}`, `info ${docId}`])
  }
})

test('a range is answered while the rest of its document is sent, if get has announced the length that info tells', async () => {
  const large = Buffer.alloc(1_000_000, 'x')
  const rest = Promise.withResolvers<void>()
  const docId = put({ data: { infoSize: told(large.length), bytes: large, framing: 'length', rest: rest.promise } })
  expect(String((await source.get(docId, '&fromOffset=10&toOffset=19')).body)).toBe('x'.repeat(10))
  expect((await source.get(docId, '&fromOffset=1000000')).headers['content-length']).toBe('0')
  rest.resolve()
  await until(
    'it is kept',
    () => keptBytes(docId),
    (kept) => kept.length === 1,
  )
})

test('whatever info tells and get sends, no complete answer has other bytes, and nothing else is kept', async () => {
  const size = fc.oneof(fc.constantFrom(0, 1, 65_535, 65_536, 65_537, 200_000), fc.nat(100), fc.nat(400_000))
  const claimed = fc.oneof(
    { weight: 3, arbitrary: fc.constant('the size') },
    fc.constantFrom('0', '1', '-5', 'nonsense', '', 'none'),
    fc.constantFrom('one less', 'one more'),
    fc.nat(400_000).map(String),
  )
  const property = fc.asyncProperty(
    fc.record({ size, claimed, framing: fc.constantFrom(...framings), from: fc.nat(400_000), length: fc.nat(100_000) }),
    async ({ size: length, claimed: claim, framing, from, length: rangeLength }) => {
      const sizes: Record<string, number> = { 'the size': length, 'one less': length - 1, 'one more': length + 1 }
      const infoSize = claim === 'none' ? [] : told(sizes[claim] ?? claim)
      const bytes = Buffer.from(Uint8Array.from({ length }, (_, index) => index % 251))
      // A Content-Length of 0 is the end of the answer.
      const isCut = framing === 'cut chunked' || (framing === 'cut length' && length > 0)
      const isTold = infoSize[0] === `X-Content-Length: ${length}`
      const isDifferent = /^X-Content-Length: \d+$/.test(infoSize[0] ?? '') && !isTold
      const ids = Array.from({ length: 4 }, () => put({ data: { infoSize, bytes, framing } })) as [string, string, string, string]
      const end = from + rangeLength
      const [get, docGet, range, head] = await Promise.all([
        orBroken(source.get(ids[0])),
        orBroken(source.docGet(ids[1])),
        orBroken(source.get(ids[2], `&fromOffset=${from}&toOffset=${end}`)),
        orBroken(source.head(ids[3])),
      ])
      const of = (answer: SourceAnswer | undefined) => (answer?.status === 200 ? answer : undefined)
      if (isTold && !isCut) expect([get, docGet, range, head].map((answer) => answer?.status)).toEqual([200, 200, 200, 200])
      if (of(get)) expect([isCut, get!.body.equals(bytes)]).toEqual([false, true])
      if (of(docGet)) expect([isCut, partOf(docGet!).equals(bytes)]).toEqual([false, true])
      if (of(range)) expect([isDifferent, range!.body.equals(bytes.subarray(from, end + 1))]).toEqual([false, true])
      // A size above 0 is passed on as info tells it.
      if (of(head))
        expect([String(length), /^[1-9]\d*$/.test(claim) ? claim : String(sizes[claim] ?? length)]).toContain(
          head!.headers['content-length'],
        )
      if (get && get.status !== 200) expect(get.headers['x-errordescription']).toMatch(/^upstream_failed: /)
      for (const id of ids) for (const kept of await keptBytes(id)) expect([isCut, kept]).toEqual([false, length])
    },
  )
  await check(property, 100)
})
