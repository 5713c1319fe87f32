import { readFileSync } from 'node:fs'
import { objectTypes, type KeyField, type ObjectType } from '../src/domain/business-object-types.ts'
import { shownOrder } from '../src/domain/business-object.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

const nameOf = ({ kind, length, label }: KeyField): string =>
  kind === 'rest' ? '...' : `${label?.en ?? (kind === 'year' ? 'year' : 'number')} ${length}`

const shownText = (type: ObjectType): string =>
  shownOrder(type)
    .map((index) => type.fields[index]!)
    .map((field, place) => {
      const value = field.kind === 'year' ? '2026' : '…'
      return place === 0 || !field.label ? value : `${field.label.en} ${value}`
    })
    .join(', ')

/** Returns docs/business-objects.md with its table of types. */
export const businessObjectsPage = (): string => {
  const names = Map.groupBy(Object.entries<ObjectType>(objectTypes), ([, { label, fields }]) => JSON.stringify([label, fields]))
  const rows = [...names.values()].map((same) => {
    const type = same[0]![1]
    return [
      same.map(([name]) => `\`${name}\``).join(', '),
      type.fields.length === 1 ? `number, up to ${type.fields[0]!.length}` : type.fields.map(nameOf).join(' + '),
      `${type.label.en} ${shownText(type)}`,
      type.label.de,
    ]
  })
  const table = markdownTable(['Type', 'Key, with characters', 'Shown as', 'In German'], rows)
  return withGenerated(readFileSync(new URL('business-objects.md', import.meta.url), 'utf8'), 'types', `\n${table}`)
}
