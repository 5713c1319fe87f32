// Calculates what a rate of documents demands of each part of an installation, from the costs that the other benchmarks measure. It
// measures nothing itself.
import { readFileSync, writeFileSync } from 'node:fs'
import { withGenerated } from '../docs/generated-table.ts'
import { demandOf, measuredCosts, sizeOf } from './capacity/model.ts'
import { readOptions } from './support/options.ts'
import { measuresOf, tableOf } from './support/tables.ts'

const options = readOptions('capacity', {
  json: { type: 'boolean', default: false },
  'write-docs': { type: 'boolean', default: false },
  'per-second': { type: 'string', default: '10,100,300,1000' },
  'per-day': { type: 'string', default: '10000,100000,1000000,5000000' },
  destinations: { type: 'string', default: '1' },
  kibibytes: { type: 'string', default: '100' },
})
const destinations = Number(options.destinations)
const documentBytes = Number(options.kibibytes) * 1_024
const numbersOf = (list: string) => list.split(',').map(Number)
const rows = numbersOf(options['per-second']).map((perSecond) => ({
  case: `${perSecond} documents per second`,
  ...demandOf(measuredCosts, { perSecond, destinations, documentBytes }),
}))
const sizes = numbersOf(options['per-day']).map((perDay) => ({
  case: `${perDay.toLocaleString('en')} documents a day`,
  ...sizeOf(measuredCosts, { perDay, destinations, documentBytes }),
}))
if (options['write-docs']) {
  const page = new URL('../docs/scaling.md', import.meta.url)
  const madeBy = 'script/bench capacity --write-docs'
  const withSizes = withGenerated(readFileSync(page, 'utf8'), 'sizing', `\n${tableOf(sizes)}`, madeBy)
  writeFileSync(page, withGenerated(withSizes, 'capacity', `\n${tableOf(rows)}`, madeBy))
} else if (options.json) console.log(JSON.stringify({ name: 'capacity', settings: { destinations, documentBytes }, rows, sizes }, null, 2))
else {
  for (const { case: name, ...row } of [...sizes, ...rows]) {
    console.log(name)
    for (const [measure, text] of measuresOf(row)) console.log(`  ${measure}: ${text}`)
  }
}
