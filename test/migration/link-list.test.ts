import { Readable } from 'node:stream'
import { readLinkList, type LinkRow } from '../../src/migration/link-list.ts'

const read = async (...chunks: (string | Buffer)[]): Promise<LinkRow[]> => {
  const bytes = Readable.from(chunks.map((chunk) => Buffer.from(chunk as string)))
  const rows: LinkRow[] = []
  for await (const row of readLinkList(bytes)) rows.push(row)
  return rows
}

const doc1 = '005056B5A3F21EEFA9C1D04F7B6E8C11'
const doc2 = '005056B5A3F21EEFA9C1D04F7B6E8C12'
const row1 = {
  docId: doc1,
  repoId: 'Z1',
  objectType: 'BKPF',
  objectId: '100019000000012026',
  arObject: 'FIIINVOICE',
  archivedOn: '2026-03-02',
}

const header = ['MANDT', 'SAP_OBJECT', 'OBJECT_ID', 'ARCHIV_ID', 'ARC_DOC_ID', 'AR_OBJECT', 'AR_DATE', 'DEL_DATE', 'RESERVE']
const values = (date: string) => ['100', 'BKPF', '100019000000012026', 'Z1', doc1, 'FIIINVOICE', date, '', 'PDF']

describe('an export of a link table', () => {
  test.each([
    ['commas', ',', '20260302'],
    ['semicolons', ';', '02.03.2026'],
    ['tabs', '\t', '2026-03-02'],
    ['bars', '|', '03/02/2026'],
  ])('with %s', async (_, separator, date) => {
    const list = [header, values(date)].map((cells) => cells.join(separator)).join('\r\n')
    expect(await read(list)).toEqual([{ ...row1, line: 2, barcode: null }])
  })

  test('as the list of the data browser, with titles, rules and a header on every page', async () => {
    const rule = '-'.repeat(60)
    const line = (cells: string[]) => `|${cells.map((cell) => cell.padEnd(12)).join('|')}|`
    const rows = await read(
      ['Table:          TOA01', 'Displayed Fields:   9 of   9', '', rule, line(header), rule, line(values('2026.03.02')), rule].join('\n'),
      ['\n', line(header), rule, line(['100', 'BKPF', '', 'Z1', doc2, 'FIIINVOICE', '00000000', '', '']), rule, ''].join('\n'),
    )
    expect(rows).toEqual([
      { ...row1, line: 7, barcode: null },
      { ...row1, docId: doc2, objectId: null, archivedOn: null, line: 12, barcode: null },
    ])
  })

  test('of bar codes that wait for their business object', async () => {
    expect(await read(`BARCODE;CONTREP;EX_DOC_ID;ARDATE;DOCUCLASS\n4711;Z1;${doc1};20260302;FAX\n`)).toEqual([
      { line: 2, repoId: 'Z1', docId: doc1, objectType: null, objectId: null, arObject: null, archivedOn: '2026-03-02', barcode: '4711' },
    ])
  })

  test.each([
    ['SOFFPHIO', 'MANDT|PH_CLASS|PHIO_ID|LO_CLASS|LOIO_ID|CREP_ID', `100|SOFFPHIO|${doc1}|SOFFLOIO|${doc2}|Z1`],
    ['DMS_PH_CD1', 'PHIO_ID|PH_CLASS|LOIO_ID|STOR_CAT', `${doc1}|DMS_PCD1|${doc2}|DMS_C1_ST`],
    ['a join with its links', 'PHIO_ID|ARC_DOC_ID', `${doc2}|${doc1}`],
  ])('of physical objects of the Knowledge Provider: %s', async (_, names, cells) => {
    for (const separator of ['|', '\t', ';', ',']) {
      expect(await read(`${names}\n${cells}\n`.replaceAll('|', separator))).toMatchObject([{ docId: doc1 }])
    }
  })

  test('in lower case, with quoted cells, and only the column of the document ids', async () => {
    expect(await read(`object_id,arc_doc_id\n"a, ""b""",${doc1}\n`)).toMatchObject([{ objectId: 'a, "b"', docId: doc1, repoId: null }])
    expect(await read(`"ARC_DOC_ID";"OBJECT_ID"\n"${doc1}";"ü"\n`)).toMatchObject([{ docId: doc1, objectId: 'ü' }])
    expect(await read(`ARC_DOC_ID\n${doc1}\n\n${doc2}\n`)).toMatchObject([{ docId: doc1 }, { docId: doc2, line: 4 }])
  })

  test.each([
    ['UTF-8 with a mark', (text: string) => Buffer.from(`\uFEFF${text}`)],
    ['UTF-16', (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le')],
    ['UTF-16 with the high byte first', (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16()],
    ['ISO 8859-1', (text: string) => Buffer.from(text, 'latin1')],
  ])('in %s, in pieces of any length', async (_, encode) => {
    const bytes = encode(`OBJECT_ID\tARC_DOC_ID\nMüller\t${doc1}\n`)
    for (const at of [1, 2, 21, 30]) {
      expect(await read(bytes.subarray(0, at + 1), bytes.subarray(at + 1))).toMatchObject([{ objectId: 'Müller', docId: doc1 }])
    }
  })

  test('with a row that has no document id is refused as a whole', async () => {
    await expect(read(`ARC_DOC_ID;OBJECT_ID\n${doc1};1\n;2\n`)).rejects.toThrow('Line 3 of the list has no document id.')
    await expect(read(`ARC_DOC_ID;OBJECT_ID\n../x;1\n`)).rejects.toThrow('Line 2')
  })

  test('has dates that exist', async () => {
    const dates = ['20260228', '20260230', '00000101', '31.02.2026']
    const rows = await read(`ARC_DOC_ID;AR_DATE\n${dates.map((date) => `${doc1};${date}\n`).join('')}`)
    expect(rows.map(({ archivedOn }) => archivedOn)).toEqual(['2026-02-28', null, null, null])
  })

  test('with a character that the database cannot store is refused', async () => {
    await expect(read(`ARC_DOC_ID;OBJECT_ID\n${doc1};1\0\n`)).rejects.toThrow('Line 2 of the list has a NUL character')
  })

  test('that is none is refused', async () => {
    await expect(read('Object ID;Document ID\n1;2\n')).rejects.toThrow('ARC_DOC_ID')
    await expect(read('x'.repeat(70_000))).rejects.toThrow('64 KiB')
    await expect(read('')).rejects.toThrow('no header')
  })
})
