// What a search has found in the text of a business object or of a docId, to be marked on a screen.
import type { Piece } from './business-object.ts'
import { queryWords } from './document-query.ts'

/** Part of a text, marked or not. */
export interface Segment {
  text: string
  isMarked: boolean
}

const endDigitsMin = 3

const wordsOf = (query: string): string[] => {
  const words = queryWords(query)
  const all = [query.trim(), ...query.trim().split(/\s+/), ...words, words.join('')]
  const short = all.filter((word) => /^[0-9]+$/.test(word)).map((word) => word.replace(/^0+(?=[0-9])/, ''))
  return [...new Set([...all, ...short])].filter((word) => word !== '').map((word) => word.toUpperCase())
}

/** Returns where in a key a word is found: at the beginning of a shown value, zeros and blanks aside, or as the last digits of one. */
const rangesOf = (key: string, pieces: readonly Piece[], word: string): [from: number, to: number][] => {
  const ranges: [number, number][] = []
  const values = pieces.flatMap(({ text, start }) => (start === undefined ? [] : [{ text, start }]))
  const isEnd = /^[0-9]+$/.test(word) && word.length >= endDigitsMin
  for (let from = key.indexOf(word); from !== -1; from = key.indexOf(word, from + 1)) {
    const to = from + word.length
    const isFound = values.some(({ text, start }) => {
      const before = Math.max(0, ...values.flatMap((other) => (other.start < start ? [other.start + other.text.length] : [])))
      const begins = before <= from && from <= start && to > start && /^[0 ]*$/.test(key.slice(from, start))
      return begins || from === 0 || (isEnd && (to === key.length || (from >= before && to === start + text.length)))
    })
    if (isFound) ranges.push([from, to])
  }
  return ranges
}

/**
 * Cuts the pieces of a text where the words of a search begin and end.
 * @param key what the pieces are part of
 */
export const markPieces = (pieces: readonly Piece[], key: string, query: string | undefined): Segment[] => {
  const upper = key.toUpperCase()
  // A letter that has two in upper case would move the others.
  const ranges = query === undefined || upper.length !== key.length ? [] : wordsOf(query).flatMap((word) => rangesOf(upper, pieces, word))
  const isMarked = (index: number) => ranges.some(([from, to]) => from <= index && index < to)
  const segments: Segment[] = []
  for (const { text, start } of pieces) {
    for (const [index, character] of text.split('').entries()) {
      const marked = start !== undefined && isMarked(start + index)
      const last = segments.at(-1)
      if (last?.isMarked === marked) last.text += character
      else segments.push({ text: character, isMarked: marked })
    }
  }
  return segments
}
