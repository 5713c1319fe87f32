import { cutText, plainLines } from '../../base/text.ts'
import type { Json } from './relay.ts'

// Enough for any message of the relay. Answers of targets are longer; the beginning says what they are.
const textMaxChars = 1_000

interface Shortened {
  value: Json
  /** The lists of which the end was left out, and how many entries that are. */
  omitted: { list: string; entries: number }[]
}

/** Cuts long texts and lists, so that an answer leaves an agent room to think, and removes from texts what only programs see. */
export const shorten = (value: Json, listMax: number): Shortened => {
  const omitted: Shortened['omitted'] = []
  const cut = (part: Json, path: string): Json => {
    if (typeof part === 'string') {
      const text = plainLines(part)
      return text.length <= textMaxChars ? text : `${cutText(text, textMaxChars)} ... (${text.length} characters)`
    }
    if (Array.isArray(part)) {
      if (part.length > listMax) omitted.push({ list: path, entries: part.length - listMax })
      return part.slice(0, listMax).map((each, index) => cut(each, `${path}[${index}]`))
    }
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, cut(each, path === '' ? name : `${path}.${name}`)]))
  }
  return { value: cut(value, ''), omitted }
}
