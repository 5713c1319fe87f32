// `npm run conventions`: two rules about SQL and one about English that no linter knows. Prints `file:line: rule: text`.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface SourceFile {
  /** Relative to the root of the repository, with slashes. */
  path: string
  text: string
}

export interface Finding {
  path: string
  line: number
  rule: string
  text: string
}

const lineOf = (text: string, index: number) => text.slice(0, index).split('\n').length

const findingsOf = ({ path, text }: SourceFile, rule: string, pattern: RegExp, describe: (match: string) => string): Finding[] =>
  [...text.matchAll(pattern)].map((match) => ({ path, line: lineOf(text, match.index), rule, text: describe(match[0]) }))

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

// in SQL, up to the end of its `set` clause, and by the query builder, up to the end of the argument of `update`
const changesStatus =
  /\bupdate deliveries\b(?:(?!\b(?:where|from|returning)\b|`)[^])*?(?:\bset|,)\s+status\s*=|\(\s*'deliveries'\s*\)(?:(?!\n\s*\n|\bawait\b)[^])*?\.update\(\{[^}]*[\s{,]status\b/g

const statusChanges = (file: SourceFile): Finding[] =>
  findingsOf(file, 'delivery-status', changesStatus, (match) => `only src/delivery changes it: ${oneLine(match)}`)

// A column without a default makes the inserts of the former version fail.
const contracts =
  /\bdrop (?:table|column|view)\b|\brename (?:to|column)\b|\bset not null\b|\balter column \w+ type\b|\badd column \w+(?=[^,;`]*\bnot null\b)(?![^,;`]*\bdefault\b)/gi

const unstatedContractions = (file: SourceFile): Finding[] =>
  file.text.includes('insert into required_migrations')
    ? []
    : findingsOf(file, 'contract-migration', contracts, (match) => `breaks former versions: insert into required_migrations (${match})`)

const adverbs = String.raw`\b(?:anew|in\s+vain|meanwhile|from\s+then\s+on)\b|,\s+too(?=[.;,):|]|\s*$)|\bbeside(?=\s*(?:[.,;)|]|$))`
const adverb = new RegExp(adverbs, 'gim')
const adverbOrPronoun = new RegExp(String.raw`${adverbs}|\b(?:nobody|somebody|whoever)\b`, 'gim')
const preposition =
  /^\/\/\s+of\s[^,:.]*(?:\.|$)|^\/\*\*\s+(?:\*\s+)?(?:about|above|after|as|at|before|behind|below|beside|between|by|during|for|from|in|of|on|per|since|to|under|until|with|within|without)\s/i

const sayWithout = (term: string) => `say it without "${oneLine(term)}"`

const withoutCode = (text: string) => text.replaceAll(/^( *)```.*?^\1```$/gms, keptLines).replaceAll(/`[^`\n]*`/g, '`')
const keptLines = (text: string) => text.replaceAll(/[^\n]+/g, '')

/** Returns the comment on one line after another, with its markers replaced, so that a term may span two lines. */
const plainComment = (comment: string) => comment.replaceAll(/\s*\n\s*(?:\*\/?|\/\/)?[ ]*/g, ' ').replace(/\s*\*\/\s*$/, '')

const comment = /^[ \t]*\/\*.*?\*\/|(?:(?:^|(?<=\s))\/\/[^\n]*(?:\n[ \t]*(?=\/\/)|$))+/gms

const plainEnglish = (file: SourceFile): Finding[] =>
  [...file.text.matchAll(comment)].flatMap(({ index, 0: text }) => {
    const begins = preposition.test(text.trimStart()) ? ['a doc comment begins with a verb or a noun'] : []
    const words = [...withoutCode(plainComment(text)).matchAll(adverbOrPronoun)].map(([word]) => sayWithout(word))
    const line = lineOf(file.text, index + text.length - text.trimStart().length)
    return [...begins, ...words].map((problem) => ({ path: file.path, line, rule: 'plain-english', text: problem }))
  })

const plainEnglishOfPage = ({ path, text }: SourceFile): Finding[] =>
  findingsOf({ path, text: withoutCode(text) }, 'plain-english', adverb, sayWithout)

// Decision records stay as they were decided, and measurements as programs have written them.
const isPage = (path: string) => path.endsWith('.md') && !/^docs\/(?:adr|measurements)\//.test(path)

/** Returns what breaks a convention, file by file. */
export const findingsIn = (all: SourceFile[]): Finding[] =>
  [
    ...all.filter(({ path }) => path.endsWith('.ts') && !/^(src\/delivery|test|bench)\//.test(path)).flatMap(statusChanges),
    ...all.filter(({ path }) => path.startsWith('migrations/')).flatMap(unstatedContractions),
    ...all.filter(({ path }) => /\.m?[jt]s$/.test(path)).flatMap(plainEnglish),
    ...all.filter(({ path }) => isPage(path)).flatMap(plainEnglishOfPage),
  ].toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line)

/** Returns the files of the working tree that are tracked or new, as text. */
const sourceFiles = (): SourceFile[] =>
  execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'], { encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
    .flatMap((path) => {
      try {
        return [{ path, text: readFileSync(path, 'utf8') }]
      } catch {
        // deleted, but not yet from the index
        return []
      }
    })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const findings = findingsIn(sourceFiles())
  for (const { path, line, rule, text } of findings) console.error(`${path}:${line}: ${rule}: ${text}`)
  if (findings.length > 0) process.exitCode = 1
}
