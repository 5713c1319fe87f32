const columnsMax = 140

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null

/**
 * Returns JSON whose objects and lists stand on one line where they fit: a property of a schema is then one line of a difference, not five.
 * @param value what `JSON.stringify` prints without loss
 */
export const generatedJson = (value: unknown): string => `${linesOf(JSON.parse(JSON.stringify(value)), '')}\n`

const linesOf = (value: unknown, indent: string, prefix = ''): string => {
  const line = `${indent}${prefix}${spaced(value)}`
  if (!isContainer(value) || line.length < columnsMax) return line
  const entries = Array.isArray(value)
    ? value.map((item: unknown) => linesOf(item, `${indent}  `))
    : Object.entries(value).map(([name, item]) => linesOf(item, `${indent}  `, `${JSON.stringify(name)}: `))
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${indent}${prefix}${open}\n${entries.join(',\n')}\n${indent}${close}`
}

const spaced = (value: unknown): string => {
  if (!isContainer(value)) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`
  const entries = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${spaced(item)}`)
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}
