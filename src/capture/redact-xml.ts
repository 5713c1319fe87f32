import { redactJson } from './redact-json.ts'
import {
  assignment,
  isNamedBeside,
  isSensitive,
  isSignature,
  mention,
  namesAnother,
  pauseAfterSteps,
  redacted,
  redactPairs,
  type Steps,
} from './redact.ts'

// Sections whose content is not markup.
const sections = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
  ['<!', '>'],
] as const

const endOfElementName = /[\s/>]/g
const blank = /\s/

const withoutPrefix = (name: string): string => name.slice(name.indexOf(':') + 1)

/** Returns the name of the attribute whose value begins at `quote`. */
const attributeName = (text: string, quote: number): string => {
  const skipBlanks = (at: number) => {
    let before = at
    while (blank.test(text[before]!)) before -= 1
    return before
  }
  let at = skipBlanks(quote - 1)
  if (text[at] !== '=') return ''
  at = skipBlanks(at - 1)
  const end = at + 1
  while (!/[\s<"'/]/.test(text[at]!)) at -= 1
  return text.slice(at + 1, end)
}

interface Attribute {
  /** Name without its prefix. */
  name: string
  /** Offsets of its value, without the quotes. */
  from: number
  to: number
}

interface Tag {
  /** Name without its prefix. */
  name: string
  end: number
  isEmpty: boolean
  attributes: Attribute[]
}

/** Reads the start tag at `start`. @returns undefined if it does not end */
function* readStartTag(text: string, start: number, isPauseDue: () => boolean): Steps<Tag | undefined> {
  endOfElementName.lastIndex = start + 1
  const nameEnd = endOfElementName.exec(text)?.index
  if (nameEnd === undefined) return undefined
  const attributes: Attribute[] = []
  for (let at = nameEnd; at < text.length; at += 1) {
    const character = text[at]!
    if (character === '>')
      return { name: withoutPrefix(text.slice(start + 1, nameEnd)), end: at + 1, isEmpty: text[at - 1] === '/', attributes }
    if (character === '<') return undefined
    if (character !== '"' && character !== "'") continue
    const close = text.indexOf(character, at + 1)
    if (close < 0) return undefined
    if (isPauseDue()) yield
    attributes.push({ name: withoutPrefix(attributeName(text, at)), from: at + 1, to: close })
    at = close
  }
  return undefined
}

const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }
const entity = /&(?:(lt|gt|quot|apos|amp)|#(\d{1,7})|#x([\da-f]{1,6}));/gi

const unescape = (text: string): string =>
  text.replaceAll(entity, (whole, name: string | undefined, decimal: string | undefined, hexadecimal: string | undefined) => {
    if (name !== undefined) return entities[name.toLowerCase()]!
    const code = decimal === undefined ? Number.parseInt(hexadecimal!, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

// XML in the text of XML in the text of XML.
const layersMax = 4
const jsonOpening = /^\s*["[{]/

/**
 * Redacts what stands in a text, an attribute, a comment or a CDATA section: XML, JSON, or names and values as in the text of a connection.
 * @param isEscaped true if markup in it is escaped
 * @returns undefined if it cannot be read, and may contain a secret
 */
function* redactInner(text: string, isEscaped: boolean, layer: number): Steps<string | undefined> {
  const inner = isEscaped ? unescape(text) : text
  if (!assignment.test(inner)) return text
  if (layer >= layersMax) return undefined
  let safe: string | undefined
  if (jsonOpening.test(inner)) safe = yield* redactJson(inner)
  if (safe === undefined && /<|&(?:lt|gt|amp|quot|apos|#\w+);/.test(inner)) safe = yield* redactXml(inner, layer + 1)
  else safe ??= yield* redactPairs(inner)
  if (safe === undefined || safe === inner) return safe === undefined ? undefined : text
  return isEscaped ? escape(safe) : safe
}

// Longer than names are.
const nameMaxCharacters = 100

/**
 * Redacts XML: the content of elements and the values of attributes with sensitive names, whatever their prefix, values beside which a sensitive
 * name stands (`name="password" value="x"`, `<key>password</key><string>x</string>`), and what stands in texts, comments and CDATA sections. Reads
 * the markup once from left to right, without building a tree.
 * @param text XML with one character per byte, in any encoding that contains ASCII
 * @returns undefined if a tag, a comment or a section does not end, and something sensitive may stand behind it
 */
export function* redactXml(text: string, layer = 0): Steps<string | undefined> {
  const isPauseDue = pauseAfterSteps()
  // The name of an attribute may be a value, in which any character may be escaped.
  if (!mention.test(text) && !text.includes('&#')) return text
  const output: string[] = []
  let kept = 0
  const replace = (from: number, to: number, by = redacted) => {
    if (from >= to || from < kept) return
    output.push(text.slice(kept, from), by)
    kept = to
  }
  /** @returns false if it cannot be read */
  function* replaceInner(from: number, to: number, isEscaped: boolean): Steps<boolean> {
    if (from >= to) return true
    const inner = text.slice(from, to)
    const safe: string | undefined = yield* redactInner(inner, isEscaped, layer)
    if (safe !== undefined && safe !== inner) replace(from, to, safe)
    return safe !== undefined
  }
  /** The sensitive element around the current position, with the number of open elements from it on. */
  let hidden: { from: number; depth: number; isSignature: boolean } | undefined
  /** The element that has begun last, if nothing but text has followed. */
  let leaf: { name: string; from: number } | undefined
  /** The element before this position has the name of a secret as its text: the next one has the secret. */
  let isNamed = false

  let end = 0
  for (let start = text.indexOf('<'); ; start = text.indexOf('<', end)) {
    if (isPauseDue()) yield
    if (!hidden && !(yield* replaceInner(end, start < 0 ? text.length : start, true))) return undefined
    if (start < 0) break
    const section = sections.find(([opening]) => text.startsWith(opening, start))
    if (section) {
      const close = text.indexOf(section[1], start + section[0].length)
      if (close < 0) return assignment.test(text.slice(start)) ? undefined : output.join('') + text.slice(kept)
      end = close + section[1].length
      if (!hidden && !(yield* replaceInner(start + section[0].length, close, false))) return undefined
    } else if (text[start + 1] === '/') {
      const close = text.indexOf('>', start)
      if (close < 0 || text.lastIndexOf('<', close) > start)
        return assignment.test(text.slice(start)) ? undefined : output.join('') + text.slice(kept)
      end = close + 1
      isNamed =
        leaf !== undefined &&
        namesAnother(leaf.name) &&
        start - leaf.from <= nameMaxCharacters &&
        isSensitive(unescape(text.slice(leaf.from, start)).trim())
      leaf = undefined
      if (hidden && (hidden.depth -= 1) === 0) {
        replace(hidden.from, start)
        hidden = undefined
      }
    } else {
      const tag: Tag | undefined = yield* readStartTag(text, start, isPauseDue)
      if (!tag) return assignment.test(text.slice(start)) ? undefined : output.join('') + text.slice(kept)
      ;({ end } = tag)
      const isSecretByName = isNamed
      isNamed = false
      leaf = tag.isEmpty ? undefined : { name: tag.name, from: end }
      // An element like ds:Signature consists of public parts. A secret is a single value.
      if (hidden?.isSignature && hidden.depth === 1) hidden = undefined
      if (hidden) {
        if (!tag.isEmpty) hidden.depth += 1
        continue
      }
      const isSecretByAttribute = tag.attributes.some(
        ({ name, from, to }) => namesAnother(name) && to - from <= nameMaxCharacters && isSensitive(unescape(text.slice(from, to))),
      )
      for (const { name, from, to } of tag.attributes) {
        if (isSensitive(name) || ((isSecretByAttribute || isSecretByName) && isNamedBeside(name))) replace(from, to)
        else if (!(yield* replaceInner(from, to, true))) return undefined
      }
      if (tag.isEmpty) continue
      if (isSecretByName || isSecretByAttribute) hidden = { from: end, depth: 1, isSignature: false }
      else if (isSensitive(tag.name)) hidden = { from: end, depth: 1, isSignature: isSignature(tag.name) }
    }
  }
  if (hidden) replace(hidden.from, text.length)
  return output.join('') + text.slice(kept)
}
