import { businessObjectText, readBusinessObject } from '../../src/domain/business-object.ts'
import { readQuery } from '../../src/domain/document-query.ts'
import { markPieces } from '../../src/domain/query-marks.ts'
import { createRandom } from '../fuzz/random.ts'

test.each([
  ['BKPF', '100019000047112026', 'Invoice 1900004711, company 1000, 2026', 'Rechnung 1900004711, Buchungskreis 1000, 2026'],
  ['bkpf ', '1000-1900004711-2026', 'Invoice 1900004711, company 1000, 2026', 'Rechnung 1900004711, Buchungskreis 1000, 2026'],
  ['BKPF', '1000/0000004711/2026', 'Invoice 4711, company 1000, 2026', 'Rechnung 4711, Buchungskreis 1000, 2026'],
  ['BKPF', 'AB  19000047112026', 'Invoice 1900004711, company AB, 2026', 'Rechnung 1900004711, Buchungskreis AB, 2026'],
  ['BKPF', '000100000047112026', 'Invoice 4711, company 0001, 2026', 'Rechnung 4711, Buchungskreis 0001, 2026'],
  ['BUS2081', '51056001012026', 'Incoming invoice 5105600101, 2026', 'Eingangsrechnung 5105600101, 2026'],
  ['VBRK', '0090001234', 'Billing document 90001234', 'Faktura 90001234'],
  ['EKKO', '4500000123', 'Purchase order 4500000123', 'Bestellung 4500000123'],
  ['BUS2012', '4500000123', 'Purchase order 4500000123', 'Bestellung 4500000123'],
  ['EKPO', '450000012300010', 'Purchase order 4500000123, item 10', 'Bestellung 4500000123, Position 10'],
  ['EKPO', '4500000123', 'Purchase order 4500000123', 'Bestellung 4500000123'],
  ['PREL', '000012340002    0099991231', 'Personnel file 1234, infotype 0002', 'Personalakte 1234, Infotyp 0002'],
  ['MARA', 'PUMP-4711', 'Material PUMP-4711', 'Material PUMP-4711'],
  ['VBRK', '0000000000', 'Billing document 0', 'Faktura 0'],
  // No key of the fields: too short, too long, no year.
  ['BKPF', '1900004711', 'Invoice 1900004711', 'Rechnung 1900004711'],
  ['BKPF', '1000190000471120261', 'Invoice 1000190000471120261', 'Rechnung 1000190000471120261'],
  ['BKPF', '10001900004711ABCD', 'Invoice 10001900004711ABCD', 'Rechnung 10001900004711ABCD'],
  ['PREL', '1234', 'Personnel file 1234', 'Personalakte 1234'],
  // Not in the table.
  ['ZTYPE', '0012', 'ZTYPE 0012', 'ZTYPE 0012'],
  ['constructor', '1', 'constructor 1', 'constructor 1'],
  [null, '0012', '0012', '0012'],
  ['BKPF', null, 'BKPF', 'BKPF'],
  [null, null, undefined, undefined],
])('%s %s is read as %s', (type, key, en, de) => {
  expect([businessObjectText({ type, key }, 'en'), businessObjectText({ type, key }, 'de')]).toEqual([en, de])
})

test('every piece that stands in the key is where it says, whatever the type and the key are', () => {
  const { pick, chance } = createRandom(7)
  const types = ['BKPF', 'RMRP', 'EKPO', 'PREL', 'DRAW', 'ANLA', 'VBRK', 'ZX', null]
  for (let run = 0; run < 3_000; run += 1) {
    const key = Array.from({ length: pick([1, 4, 10, 14, 15, 18, 20, 33, 45]) }, () =>
      pick(['000', '1', '2', '47', '9', '0', '  ', 'A', '-', '/', 'ß', '😀', '2026']),
    ).join('')
    const object = { type: pick(types), key }
    const pieces = readBusinessObject(object, chance(0.5) ? 'en' : 'de')!
    for (const { text, start } of pieces) if (start !== undefined) expect(key.slice(start, start + text.length)).toBe(text)
    const query = chance(0.5) ? key.slice(0, 4) : key.slice(-4)
    const marked = markPieces(pieces, key, query)
    expect(marked.map(({ text }) => text).join('')).toBe(pieces.map(({ text }) => text).join(''))
  }
})

const marksOf = (type: string, key: string, query: string): string => {
  const pieces = readBusinessObject({ type, key }, 'en')!
  return markPieces(pieces, key, query)
    .map(({ text, isMarked }) => (isMarked ? `[${text}]` : text))
    .join('')
}

test.each([
  ['4711', 'Invoice 190000[4711], company 1000, 2026'],
  ['1900', 'Invoice [1900]004711, company 1000, 2026'],
  ['00', 'Invoice 1900004711, company 1000, 2026'],
  ['4711 2026', 'Invoice 190000[4711], company 1000, [2026]'],
  ['47112026', 'Invoice 190000[4711], company 1000, [2026]'],
  ['BKPF 100019000047112026', 'Invoice [1900004711], company [1000], [2026]'],
  ['invoice 1900004711, company 1000, 2026', 'Invoice [1900004711], company [1000], [2026]'],
  ['1900 004 711', 'Invoice [1900004711], company 1000, 2026'],
  ['01900004711', 'Invoice [1900004711], company 1000, 2026'],
  ['vendor', 'Invoice 1900004711, company 1000, 2026'],
])('a search for %s marks %s', (query, marked) => {
  expect(marksOf('BKPF', '100019000047112026', query)).toBe(marked)
})

test.each([
  ['VBRK', '0090001234', '0090001234', 'Billing document [90001234]'],
  ['VBRK', '0090001234', '9000', 'Billing document [9000]1234'],
  ['ZT', 'inv-2026', 'INV', 'ZT [inv]-2026'],
])('in %s %s, a search for %s marks %s', (type, key, query, marked) => {
  expect(marksOf(type, key, query)).toBe(marked)
})

test('a long text is read as few alternatives', () => {
  for (const text of [
    '1 '.repeat(127),
    'Invoice '.repeat(31),
    '1900004711 '.repeat(12),
    'a/b,c;d '.repeat(31),
    '1 2 3 4 5 6 7 8 9 10 11 12',
  ]) {
    const alternatives = readQuery(text.slice(0, 255))
    expect(alternatives.length).toBeLessThan(40)
    expect(alternatives.flat().length).toBeLessThan(60)
  }
})
