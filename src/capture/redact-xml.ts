import { isSensitive, isSignature, mention, redacted, pauseAfterSteps, type Steps } from './redact.ts'

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

interface Tag {
  name: string
  end: number
  isEmpty: boolean
  /** Quotes around the values of sensitive attributes. */
  secrets: { from: number; to: number }[]
}

/** Reads the start tag at `start`. @returns undefined if it does not end */
function* readStartTag(text: string, start: number, isPauseDue: () => boolean): Steps<Tag | undefined> {
  endOfElementName.lastIndex = start + 1
  const nameEnd = endOfElementName.exec(text)?.index
  if (nameEnd === undefined) return undefined
  const secrets: Tag['secrets'] = []
  for (let at = nameEnd; at < text.length; at += 1) {
    const character = text[at]!
    if (character === '>')
      return { name: withoutPrefix(text.slice(start + 1, nameEnd)), end: at + 1, isEmpty: text[at - 1] === '/', secrets }
    if (character !== '"' && character !== "'") continue
    const close = text.indexOf(character, at + 1)
    if (close < 0) return undefined
    if (isPauseDue()) yield
    if (isSensitive(withoutPrefix(attributeName(text, at)))) secrets.push({ from: at + 1, to: close })
    at = close
  }
  return undefined
}

/**
 * Redacts XML: the content of elements and the values of attributes with sensitive names, whatever their prefix. Reads the markup once
 * from left to right, without building a tree. From the first tag, comment or section that does not end, the text stays as it is.
 * @param text XML with one character per byte, in any encoding that contains ASCII
 */
export function* redactXml(text: string): Steps<string> {
  const isPauseDue = pauseAfterSteps()
  if (!mention.test(text)) return text
  const output: string[] = []
  let kept = 0
  const replace = (from: number, to: number) => {
    if (from >= to) return
    output.push(text.slice(kept, from), redacted)
    kept = to
  }
  /** The sensitive element around the current position, with the number of open elements from it on. */
  let hidden: { from: number; depth: number; isSignature: boolean } | undefined

  let end: number
  for (let start = text.indexOf('<'); start >= 0; start = text.indexOf('<', end)) {
    if (isPauseDue()) yield
    const section = sections.find(([opening]) => text.startsWith(opening, start))
    if (section) {
      const close = text.indexOf(section[1], start + section[0].length)
      if (close < 0) break
      end = close + section[1].length
    } else if (text[start + 1] === '/') {
      const close = text.indexOf('>', start)
      if (close < 0) break
      end = close + 1
      if (hidden && (hidden.depth -= 1) === 0) {
        replace(hidden.from, start)
        hidden = undefined
      }
    } else {
      const tag: Tag | undefined = yield* readStartTag(text, start, isPauseDue)
      if (!tag) break
      ;({ end } = tag)
      // An element like ds:Signature consists of public parts. A secret is a single value.
      if (hidden?.isSignature && hidden.depth === 1) hidden = undefined
      if (hidden) {
        if (!tag.isEmpty) hidden.depth += 1
        continue
      }
      for (const { from, to } of tag.secrets) replace(from, to)
      if (!tag.isEmpty && isSensitive(tag.name)) hidden = { from: end, depth: 1, isSignature: isSignature(tag.name) }
    }
  }
  if (hidden) replace(hidden.from, text.length)
  return output.join('') + text.slice(kept)
}
