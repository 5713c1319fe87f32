import { printableAscii } from './bytes.ts'

/** A line of what the interface calls ASCII: `key="value";` after `key="value";`, a quotation mark in a value doubled. */
export const asLine = (line: Record<string, string>): string => {
  const pairs = Object.entries(line).map(([key, value]) => `${key}="${printableAscii(value).replaceAll('"', '""')}";`)
  return `${pairs.join('')}\r\n`
}
