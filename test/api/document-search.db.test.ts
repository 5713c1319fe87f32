import { newId } from '../../src/base/ids.ts'
import { objectTypes, type ObjectType } from '../../src/domain/business-object-types.ts'
import { businessObjectText } from '../../src/domain/business-object.ts'
import { createRandom } from '../fuzz/random.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { wire } from './objstore.ts'

const { database, acme, other } = share(await startScene())
const bucket = await wire(acme, 'A1')
const archive = await wire(acme, 'B1')
const hook = await (async () => {
  const created = await acme.call('POST', '/destinations', {
    name: 'Hook',
    connector_type: 'webhook',
    config: { url: 'https://a.example' },
    credentials: {},
  })
  return created.json.data.id as string
})()
const foreign = await wire(other, 'A1')

beforeEach(async () => {
  await database.db('deliveries').delete()
  await database.db('documents').delete()
})

interface Row {
  id: string
  docId: string
  repo: typeof bucket
  repoId: string
  status: string
  contentType: string
  size: number
  objectType: string | null
  objectId: string | null
  arObject: string | null
  acknowledged: boolean
  deliveries: Record<string, string>
}

const plain: Omit<Row, 'id'> = {
  docId: 'DOC1',
  repo: bucket,
  repoId: 'A1',
  status: 'delivered',
  contentType: 'application/pdf',
  size: 5,
  objectType: null,
  objectId: null,
  arObject: null,
  acknowledged: false,
  deliveries: {},
}

const insert = async (changes: Partial<Row> = {}, workspaceId = acme.id): Promise<Row> => {
  const row: Row = { id: newId(), ...plain, ...changes }
  const now = new Date()
  await database.db('documents').insert({
    id: row.id,
    workspace_id: workspaceId,
    repository_id: row.repo.repositoryId,
    repo_id: row.repoId,
    doc_id: row.docId,
    comp_id: 'data',
    content_type: row.contentType,
    size_bytes: row.size,
    status: row.status,
    erp_object_type: row.objectType,
    erp_object_id: row.objectId,
    ar_object: row.arObject,
    acknowledged_at: row.acknowledged ? now : null,
    request_id: newId(),
    received_at: now,
    modified_at: now,
  })
  for (const [destinationId, status] of Object.entries(row.deliveries)) {
    const path = { connection_id: row.repo.connectionId, path: row.id }
    await database
      .db('deliveries')
      .insert({ document_id: row.id, destination_id: destinationId, workspace_id: workspaceId, status, ...path })
  }
  // The trigger that derives the status of a document from its deliveries must not change what the test has chosen.
  await database.db('documents').where({ id: row.id }).update({ status: row.status })
  return row
}

/** Reads all pages of a search. */
const searchAll = async (query: Record<string, string>, perPage = 100): Promise<string[]> => {
  const ids: string[] = []
  let before: string | null = null
  do {
    const parameters = new URLSearchParams({ ...query, per_page: String(perPage), ...(before !== null && { before }) })
    const { status, json } = await acme.call('GET', `/documents/search?${parameters.toString()}`)
    if (status !== 200) throw new Error(JSON.stringify(json))
    ids.push(...json.data.map(({ id }: { id: string }) => id))
    expect(json.data.length).toBeLessThanOrEqual(perPage)
    expect(Object.keys(json.meta).toSorted()).toEqual(['next_cursor', 'per_page'])
    before = json.meta.next_cursor
  } while (before !== null)
  return ids
}

const connectors: Record<string, string> = {
  [bucket.destinationId]: 'objstore',
  [archive.destinationId]: 'objstore',
  [hook]: 'webhook',
}

/** Meaning of each parameter, without an index. */
const meaning: Record<string, (row: Row, value: string) => boolean> = {
  q: (row, value) =>
    [row.docId, row.objectId ?? '', (row.objectId ?? '').replace(/^0+/, '')].some(
      (key) => key.startsWith(value.toUpperCase()) || (/^\d{3,}$/.test(value) && /^\d+$/.test(key) && key.endsWith(value)),
    ),
  doc_id: (row, value) => row.docId === value,
  doc_id_prefix: (row, value) => row.docId.startsWith(value),
  erp_object_type: (row, value) => row.objectType === value,
  erp_object_id: (row, value) => row.objectId === value,
  ar_object: (row, value) => row.arObject === value,
  content_type: (row, value) => row.contentType === value,
  size_min: (row, value) => row.size >= Number(value),
  size_max: (row, value) => row.size <= Number(value),
  repo_id: (row, value) => row.repoId === value,
  status: (row, value) => row.status === value,
  acknowledged: (row, value) => String(row.acknowledged) === value,
}

const isFound = (row: Row, query: Record<string, string>): boolean => {
  const {
    destination_id: destinationId,
    connection_id: connectionId,
    connector_type: connector,
    delivery_status: deliveryStatus,
    ...others
  } = query
  const ofDelivery = Object.entries(row.deliveries).some(
    ([id, status]) =>
      (destinationId === undefined || id === destinationId) &&
      (connectionId === undefined || row.repo.connectionId === connectionId) &&
      (connector === undefined || connectors[id] === connector) &&
      (deliveryStatus === undefined || status === deliveryStatus),
  )
  const asksForDelivery = [destinationId, connectionId, connector, deliveryStatus].some((value) => value !== undefined)
  return Object.entries(others).every(([name, value]) => meaning[name]!(row, value)) && (ofDelivery || !asksForDelivery)
}

test('every combination of conditions finds the documents that meet all of them, newest first, page by page', async () => {
  const { pick, chance } = createRandom(1)
  const values = {
    q: ['in', 'INV1', '47', '711', 'x'],
    doc_id: ['INV1', 'INV12', 'ORD1'],
    doc_id_prefix: ['INV', 'ORD', 'INV1', 'inv'],
    erp_object_type: ['BKPF', 'VBRK'],
    erp_object_id: ['4711', '0047', '12'],
    ar_object: ['ZINV', 'ZORD'],
    content_type: ['application/pdf', 'image/tiff'],
    size_min: ['5', '10'],
    size_max: ['5', '10'],
    repo_id: ['A1', 'B1'],
    status: ['delivered', 'failed'],
    acknowledged: ['true', 'false'],
    destination_id: [bucket.destinationId, archive.destinationId, hook, foreign.destinationId],
    connection_id: [bucket.connectionId, archive.connectionId, foreign.connectionId],
    connector_type: ['objstore', 'webhook', 'sftp'],
    delivery_status: ['delivered', 'failed', 'held'],
  }
  const rows: Row[] = []
  for (let index = 0; index < 120; index += 1) {
    const repo = pick([bucket, archive])
    const deliveries = Object.entries(connectors).flatMap(([id]) => (chance(0.5) ? [[id, pick(['delivered', 'failed', 'held'])]] : []))
    rows.unshift(
      await insert({
        docId: pick(['INV1', 'INV12', 'ORD1', 'ORD22']),
        repo,
        repoId: repo === bucket ? 'A1' : 'B1',
        status: pick(['delivered', 'failed', 'retrying']),
        contentType: pick(['application/pdf', 'image/tiff', 'text/plain']),
        size: pick([1, 5, 10, 20]),
        objectType: pick(['BKPF', 'VBRK', null]),
        objectId: pick(['4711', '0047', '12', null]),
        arObject: pick(['ZINV', 'ZORD', null]),
        acknowledged: chance(0.3),
        deliveries: Object.fromEntries(deliveries),
      }),
    )
  }
  await insert({ deliveries: { [foreign.destinationId]: 'failed' }, docId: 'INV1', repo: foreign }, other.id)

  const names = Object.keys(values) as (keyof typeof values)[]
  const queries = [
    ...names.flatMap((name) => values[name].map((value) => ({ [name]: value }))),
    ...Array.from({ length: 150 }, () => {
      const chosen = names.filter(() => chance(0.2))
      return Object.fromEntries(chosen.map((name) => [name, pick(values[name])]))
    }),
  ]
  let matches = 0
  for (const query of queries) {
    const isSearch = Object.keys(query).some((name) => !['repo_id', 'status', 'acknowledged'].includes(name))
    if (!isSearch) continue
    const expected = rows.filter((row) => isFound(row, query)).map(({ id }) => id)
    matches += expected.length
    expect({ query, ids: await searchAll(query, 7) }).toEqual({ query, ids: expected })
  }
  expect(matches).toBeGreaterThan(1_000)
}, 180_000)

describe('a business key', () => {
  test.each([
    ['100000000047112026', ['100000000047112026', '0000004711', '4711', '00004711', '711', '47112026', '10000000004']],
    ['100019000047112026', ['4711', '0004711', '711', '112026', '1900004711']],
    ['1000-1900004711-2026', ['4711', '711', '026', '1900004711']],
    ['0090001234', ['0090001234', '90001234', '9000', '1234', '234']],
    ['INV-2026/0815', ['inv-2026', '2026', '0815', '815']],
  ])('%s is found by what people know of it', async (objectId, texts) => {
    const { id } = await insert({ objectType: 'BKPF', objectId })
    await insert({ objectType: 'BKPF', objectId: '777' })
    for (const q of texts) expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [id] })
    // The end of a number, by three digits or more, and of nothing else.
    for (const q of ['11', '2026x', '-2027', 'V-2026', '4712']) expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [] })
  })

  test('that changes is found by its new value only', async () => {
    const { id } = await insert({ docId: 'DOCX' })
    const set = (value: string | null) => acme.call('PUT', '/documents/by-doc-id/A1/DOCX/metadata', { erp_object_id: value })
    expect(await searchAll({ erp_object_id: '4711' })).toEqual([])
    expect((await set('4711')).status).toBe(200)
    expect([await searchAll({ erp_object_id: '4711' }), await searchAll({ q: '471' })]).toEqual([[id], [id]])
    await set('4712')
    expect([await searchAll({ erp_object_id: '4711' }), await searchAll({ q: '4712' })]).toEqual([[], [id]])
    await set(null)
    expect([await searchAll({ q: '4712' }), await searchAll({ q: 'docx' })]).toEqual([[], [id]])
  })

  test('may have characters that mean something in a pattern', async () => {
    const { id } = await insert({ objectId: '50%_\\ü' })
    await insert({ objectId: '500' })
    for (const q of ['50%', '50%_', '50%_\\', '50%_\\ü']) expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [id] })
    expect(await searchAll({ q: '5%' })).toEqual([])
    expect(await searchAll({ doc_id_prefix: 'DOC%' })).toEqual([])
  })
})

describe('a business object', () => {
  const unlike: Partial<Row>[] = [
    { objectType: 'BKPF', objectId: '200019000047122027' },
    { objectType: 'VBRK', objectId: '0080004712' },
    { objectType: 'ZTYPE', objectId: '77/8' },
    { docId: 'EA95B8' },
  ]

  test.each<[type: string, key: string, texts: string[]]>([
    [
      'BKPF',
      '100019000047112026',
      [
        'BKPF 100019000047112026',
        'bkpf 4711',
        ' 1900004711 ',
        '1000 1900004711 2026',
        '1000/1900004711/2026',
        '1000-1900004711-2026',
        '1900004711/2026',
        '4711 2026',
        'BKPF 1900004711',
        'BKPF/100019000047112026',
        '1900 004 711',
        '01900004711',
        'invoice 4711',
        'rechnung 4711',
        'BKPF\u00A01000\u00A01900004711',
      ],
    ],
    ['BKPF', 'AB  19000047112026', ['AB 1900004711', 'AB 1900004711 2026']],
    ['BKPF', '1000-1900004711-2026', ['1000 1900004711 2026', 'BKPF 1900004711']],
    ['RMRP', '51056001012026', ['5105600101/2026', 'RMRP 5105600101', 'rmrp', 'Rechnung 5105600101']],
    ['VBRK', '0090001234', ['VBRK 90001234', 'vbrk 0090001234', '000000090001234', 'Faktura 1234']],
    ['EKPO', '450000012300010', ['4500000123 10', '4500000123/00010', 'EKPO 4500000123 10']],
    ['PREL', '000012340002    0099991231', ['PREL 1234', '00001234 0002', 'PREL 1234 0002']],
    ['DRAW', 'DRW0000000000000000000000042AB000', ['DRW 42 AB', '42 DRW AB 0']],
    ['ZINV', '00 12-%x_3', ['ZINV', 'zinv 00 12-%x_3', 'ZINV 00 12']],
    ['Own type', 'K 1', ['own type k 1', 'Own type K']],
    ['MARA', '000000000000004711', ['MARA 4711', 'Material 4711']],
  ])('%s %s is found by all that a screen shows of it, and by what people type', async (objectType, objectId, texts) => {
    const { id } = await insert({ objectType, objectId })
    for (const row of unlike) await insert(row)
    const shown = (['en', 'de'] as const).map((language) => businessObjectText({ type: objectType, key: objectId }, language)!)
    for (const q of [...shown, `${objectType} ${objectId}`, ...texts]) expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [id] })
  })

  test('of every type of the table is found by its text in both languages, and by its key', async () => {
    const inserted: { id: string; objectType: string; objectId: string }[] = []
    for (const [index, [objectType, { fields }]] of Object.entries<ObjectType>(objectTypes).entries()) {
      const values = { number: String(7_100 + 13 * index), year: '2026', code: 'X1', rest: '  99' }
      const objectId = fields
        .map(({ kind, length, mayBeEmpty }) => {
          const value = mayBeEmpty ? String(1 + (index % 9)) : values[kind]
          return kind === 'number' ? value.padStart(length, '0') : value.padEnd(length)
        })
        .join('')
        .trimEnd()
      inserted.push({ objectType, objectId, id: (await insert({ objectType, objectId, docId: `N${index}` })).id })
    }
    for (const { id, objectType, objectId } of inserted) {
      const texts = (['en', 'de'] as const).map((language) => businessObjectText({ type: objectType, key: objectId }, language)!)
      for (const q of [...texts, `${objectType} ${objectId}`]) expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [id] })
    }
  })

  test('of another type, year, company or item is not found', async () => {
    await insert({ objectType: 'BKPF', objectId: '100019000047112026' })
    await insert({ objectType: 'EKPO', objectId: '450000012300010' })
    const texts = [
      'VBRK 1900004711',
      '1900004711/2025',
      '1000 1900004711 2025',
      '2000 1900004711',
      '4500000123 20',
      'EKPO 1900004711',
      'Purchase order 4500000123, item 20',
      'Invoice 1900004711, company 2000, 2026',
      'Invoice 1900004712, company 1000, 2026',
      'ZZ',
      '%',
      '   ',
    ]
    for (const q of texts) expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [] })
  })

  test('that is not known is found by the docId, as titles, mails and previews name a document', async () => {
    const { id } = await insert({ docId: 'EA95B8C0' })
    await insert({ docId: 'FA95B8C0' })
    for (const q of ['Document EA95B8C0', 'Dokument EA95B8C0', 'A1/EA95B8C0/data', ' ea95b8c0']) {
      expect({ q, ids: await searchAll({ q }) }).toEqual({ q, ids: [id] })
    }
  })

  test('is found by its type among many of other types, page by page', async () => {
    const rare = [
      await insert({ objectType: 'EKKO', objectId: '4500000001' }),
      await insert({ objectType: 'ekko', objectId: '4500000002' }),
    ]
    await insert({ objectType: 'VBRK', objectId: '1', docId: 'MANY0' })
    await database.db.raw(
      `
      insert into documents (id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at,
          request_id, erp_object_type, erp_object_id)
      select
        '7ZZZZZZZZZ' || lpad(n::text, 16, '0'), workspace_id, repository_id, repo_id, 'MANY' || n, comp_id, 'text/plain', size_bytes, status,
        received_at + n * interval '1 ms', modified_at, request_id, erp_object_type, n::text
      from documents, generate_series(1, 6000) as n
      where doc_id = 'MANY0'
      `,
    )
    for (const q of ['EKKO', 'Bestellung', 'purchase']) {
      expect({ q, ids: await searchAll({ q }, 1) }).toEqual({ q, ids: rare.map(({ id }) => id).toReversed() })
    }
    expect(await searchAll({ q: 'vbrk' })).toHaveLength(6_001)
    expect(await searchAll({ q: 'Faktura 5999' })).toHaveLength(1)
  }, 120_000)
})

test('a search that would have to read many documents answers with part of a page, and continues', async () => {
  const { id: oldest } = await insert({ docId: 'MANY0', contentType: 'image/tiff' })
  await database.db.raw(
    `
    insert into documents (id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at,
        request_id)
    select
      '7ZZZZZZZZZ' || lpad(n::text, 16, '0'), workspace_id, repository_id, repo_id, 'MANY' || n, comp_id, 'text/plain', size_bytes, status,
      received_at + n * interval '1 ms', modified_at, request_id
    from documents, generate_series(1, 6000) as n
    `,
  )
  // More documents than the window begin with these characters, so all are read by their time.
  const queries: Record<string, string>[] = [
    { content_type: 'image/tiff' },
    { doc_id_prefix: 'MANY', content_type: 'image/tiff' },
    { q: 'many', size_max: '4' },
  ]
  for (const query of queries) {
    const { json } = await acme.call('GET', `/documents/search?${new URLSearchParams(query).toString()}`)
    expect(json).toEqual({ data: [], meta: { per_page: 25, next_cursor: '7ZZZZZZZZZ0000000000001001' } })
    expect(await searchAll(query)).toEqual('size_max' in query ? [] : [oldest])
  }
  expect(await searchAll({ q: 'many' })).toHaveLength(6_001)
  expect(await searchAll({ q: 'many600' })).toEqual(['7ZZZZZZZZZ0000000000006000', '7ZZZZZZZZZ0000000000000600'])
}, 120_000)

test('without a condition, a search returns all documents', async () => {
  const rows = []
  for (let index = 0; index < 5; index += 1) rows.unshift(await insert())
  const first = await acme.call('GET', `/documents/search?before=${rows[1]!.id}&per_page=2`)
  expect(first.json.data.map(({ id }: { id: string }) => id)).toEqual([rows[2]!.id, rows[3]!.id])
  expect(first.json.meta).toEqual({ per_page: 2, next_cursor: rows[3]!.id })
  expect(first.headers.get('link')).toContain(`before=${rows[3]!.id}`)
  // A cursor that is no document is a time.
  expect((await acme.call('GET', `/documents/search?before=${newId()}`)).json.data).toHaveLength(5)
})

test('with after, the list goes from the oldest document to the newest, by the time of receipt, up to a minute ago', async () => {
  const hourMs = 3_600_000
  const received = [3, 1, 2, 0].map((hour) => new Date(Date.parse('2026-03-02T10:00:00Z') + hour * hourMs))
  const ids: string[] = []
  for (const [index, receivedAt] of [...received, new Date(Date.now() + hourMs)].entries()) {
    const { id } = await insert({ docId: `FOLLOW${index}`, deliveries: index % 2 === 0 ? { [bucket.destinationId]: 'delivered' } : {} })
    await database.db('documents').where({ id }).update({ received_at: receivedAt })
    ids.push(id)
  }
  const nth = (...numbers: number[]) => numbers.map((number) => ids[number])
  const follow = async (query: string) => {
    const pages: string[][] = []
    for (let after: string | null = '00000000000000000000000000'; after !== null;) {
      const { json, headers } = await acme.call('GET', `/documents/search?${query}&after=${after}`)
      pages.push(json.data.map(({ id }: { id: string }) => id))
      after = json.meta.next_cursor
      if (after !== null) expect(headers.get('link')).toContain(`after=${after}>; rel="next"`)
    }
    return pages
  }
  expect(await follow('per_page=2')).toEqual([nth(3, 1), nth(2, 0)])
  expect(await follow('per_page=3&repo_id=A1&status=delivered')).toEqual([nth(3, 1, 2), nth(0)])
  expect((await follow(`per_page=1&destination_id=${bucket.destinationId}`)).flat()).toEqual(nth(2, 0))
  expect(await follow('q=follow1')).toEqual([nth(1)])
  expect(await follow('date_from=2026-03-02T12:00:00Z')).toEqual([nth(2, 0)])
})

test.each([
  'q=4711&page=1',
  'after=00000000000000000000000000&page=1',
  'after=00000000000000000000000000&before=00000000000000000000000000',
  'before=01J00000000000000000000000&page=2',
  'before=',
  'q=',
  `q=${'x'.repeat(256)}`,
  'q=%00',
  'doc_id=',
  'size_min=-1',
  'size_max=1.5',
  'size_max=many',
  'destination_id=1',
  'connector_type=fax',
  'delivery_status=discarded',
  'contentType=application/pdf',
])('?%s is refused', async (query) => {
  expect((await acme.call('GET', `/documents/search?${query}`)).status).toBe(400)
})

test('documents of another workspace are not found', async () => {
  const { id } = await insert(
    { docId: 'SECRET', objectId: '4711', repo: foreign, deliveries: { [foreign.destinationId]: 'failed' } },
    other.id,
  )
  const queries: Record<string, string>[] = [
    { q: 'SECRET' },
    { doc_id: 'SECRET' },
    { erp_object_id: '4711' },
    { destination_id: foreign.destinationId },
    { delivery_status: 'failed' },
    { size_min: '0' },
    { before: newId() },
  ]
  for (const query of queries) {
    expect({ query, ids: await searchAll(query) }).toEqual({ query, ids: [] })
  }
  expect((await other.call('GET', '/documents/search?q=secret')).json.data.map((row: { id: string }) => row.id)).toEqual([id])
})
