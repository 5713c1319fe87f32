/**
 * Replaces the text between `<!-- NAME: made by npm run docs -->` and `<!-- end -->`.
 * @param command makes the text, if `npm run docs` does not
 * @throws Error if the page has no such comments
 */
export const withGenerated = (page: string, name: string, text: string, command = 'npm run docs'): string => {
  const begin = `<!-- ${name}: made by ${command} -->`
  const from = page.indexOf(begin) + begin.length
  const to = page.indexOf('<!-- end -->', from)
  if (from < begin.length || to < 0) throw new Error(`The page "${page.slice(0, 20).trim()}" has no place for the generated part ${name}`)
  return page.slice(0, from) + text + page.slice(to)
}

/** Returns a Markdown table. */
export const markdownTable = (header: string[], rows: string[][]): string => {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(header), `|${'---|'.repeat(header.length)}`, ...rows.map(line), ''].join('\n')
}
