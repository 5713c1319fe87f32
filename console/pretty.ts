// Writes JSON and XML so that people can read them. Nothing but white space changes: numbers of twenty digits and repeated keys stay. The
// text may end anywhere, because only the beginning of a large body is shown. Pure, so that it can be tested without a browser.

const indentOf = (depth: number) => '  '.repeat(Math.max(0, depth))

const jsonToken = /"(?:[^"\\]|\\[^])*"?|[{}[\],:]|[^\s{}[\],:"]+/g

const prettyJson = (text: string): string => {
  const tokens = text.match(jsonToken) ?? []
  let output = ''
  let depth = 0
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1]
    if (token === '{' || token === '[') {
      depth += 1
      output += token
      if (next !== '}' && next !== ']') output += `\n${indentOf(depth)}`
    } else if (token === '}' || token === ']') {
      depth -= 1
      const isEmpty = ['{', '['].includes(tokens[index - 1] ?? '')
      output += isEmpty ? token : `\n${indentOf(depth)}${token}`
    } else if (token === ',') output += `,\n${indentOf(depth)}`
    else if (token === ':') output += ': '
    else output += token
  }
  return output
}

// Comments, CDATA, processing instructions, then tags. A value of an attribute contains no `<`, so no match reads further than the next one.
const xmlMarkup = /<!--[^]*?(?:-->|$)|<!\[CDATA\[[^]*?(?:\]\]>|$)|<\?[^]*?(?:\?>|$)|<(?:"[^"<]*"|'[^'<]*'|[^'"<>])*>/g

type XmlToken = { kind: 'open' | 'close' | 'text' | 'other'; text: string }

const kindOfMarkup = (markup: string): XmlToken['kind'] => {
  if (markup.startsWith('<![CDATA[')) return 'text'
  if (markup.startsWith('</')) return 'close'
  return /^<[!?]/.test(markup) || markup.endsWith('/>') ? 'other' : 'open'
}

const xmlTokens = (text: string): XmlToken[] => {
  const tokens: XmlToken[] = []
  const addText = (part: string) => {
    if (part.trim() !== '') tokens.push({ kind: 'text', text: part.trim() })
  }
  let end = 0
  for (const match of text.matchAll(xmlMarkup)) {
    addText(text.slice(end, match.index))
    tokens.push({ kind: kindOfMarkup(match[0]), text: match[0] })
    end = match.index + match[0].length
  }
  addText(text.slice(end))
  return tokens
}

const prettyXml = (text: string): string => {
  const tokens = xmlTokens(text)
  const lines: string[] = []
  let depth = 0
  for (let at = 0; at < tokens.length; at += 1) {
    const [token, second, third] = [tokens[at]!, tokens[at + 1], tokens[at + 2]]
    if (token.kind === 'close') depth -= 1
    // An element with nothing but a text stays in one line.
    const inOneLine = second?.kind === 'close' ? 2 : second?.kind === 'text' && third?.kind === 'close' ? 3 : 1
    const count = token.kind === 'open' ? inOneLine : 1
    const line = tokens.slice(at, at + count).map((each) => each.text)
    lines.push(indentOf(depth) + line.join(''))
    if (token.kind === 'open' && count === 1) depth += 1
    at += count - 1
  }
  return lines.join('\n')
}

/** Indents a text that is JSON or XML, by its content type or by its beginning. Returns any other text as it is. */
export const pretty = (text: string, contentType: string): string => {
  const type = contentType.split(';')[0]!.trim().toLowerCase()
  const start = text.replace(/^\uFEFF/, '').trimStart()
  if (/[/+]xml$/.test(type) || start.startsWith('<?xml')) return prettyXml(start)
  if (/^[{[]/.test(start) && (/[/+]json$/.test(type) || !type.startsWith('text/'))) return prettyJson(start)
  return text
}
