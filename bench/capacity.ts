// Calculates what a rate of documents demands of each part of an installation, from the costs that the other benchmarks measure. It
// measures nothing itself.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { withGenerated } from '../docs/generated-table.ts'
import { demandOf, measuredCosts } from './capacity/model.ts'
import { measuresOf, tableOf } from './support/tables.ts'

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    'write-docs': { type: 'boolean', default: false },
    'per-second': { type: 'string', default: '10,100,300,1000' },
    destinations: { type: 'string', default: '1' },
    kibibytes: { type: 'string', default: '100' },
  },
})
const destinations = Number(options.destinations)
const documentBytes = Number(options.kibibytes) * 1_024
const rows = options['per-second']
  .split(',')
  .map(Number)
  .map((perSecond) => ({
    case: `${perSecond} documents per second`,
    ...demandOf(measuredCosts, { perSecond, destinations, documentBytes }),
  }))
if (options['write-docs']) {
  const page = new URL('../docs/scaling.md', import.meta.url)
  const text = `\n${tableOf(rows)}`
  writeFileSync(page, withGenerated(readFileSync(page, 'utf8'), 'capacity', text, 'script/bench capacity --write-docs'))
} else if (options.json) console.log(JSON.stringify({ name: 'capacity', settings: { destinations, documentBytes }, rows }, null, 2))
else {
  for (const { case: name, ...row } of rows) {
    console.log(name)
    for (const [measure, text] of measuresOf(row)) console.log(`  ${measure}: ${text}`)
  }
}
