// `npm run conventions`: conventions of names, comments and SQL that no linter knows. Prints `file:line: rule: text`.
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

/** Matches a word in prose and as a part of an identifier: `chore`, `Chores`, `choreDeps`, `runChores`, but not `anchored`. */
const word = (name: string): RegExp => {
  const capital = name[0]!.toUpperCase() + name.slice(1)
  return new RegExp(`((?<![A-Za-z])(${name}|${capital})|(?<=[a-z0-9])${capital})s?(?![a-z])`, 'g')
}

/** Words that were invented for this project or have had too many meanings, and the words to use. */
const words: [pattern: RegExp, use: string][] = [
  // not the package @parcel/watcher
  [/(?<!@)parcel/gi, 'payload'],
  [/consignment/gi, 'delivery job'],
  [/heritage/gi, 'carried-over attributes'],
  [/\binwards?\b|\boutwards?\b|InsideOf/g, 'toCamelCase, toSnakeCase, CamelCased'],
  // not the verb: tests wire repositories to destinations
  [/\b(the|a|each|every|one) wires?\b|\bwires\b|Wire(?![a-z])|wire(-s|S)chema|domain\/wire\b/g, "route; the API's JSON; over HTTP"],
  [/patience/gi, 'lock timeout, stall timeout'],
  [/straggler/gi, 'overdue'],
  [/stranded/gi, 'orphaned'],
  [/work_?off/gi, 'process batch'],
  [/giveUp|GiveUp/g, 'abort'],
  [word('twin'), 'duplicate'],
  [word('told'), 'reported; for a heartbeat: details'],
  [word('advice'), 'remedy'],
  [word('chore'), 'maintenance job'],
  [
    /\bneeds? (a|our|my) hand\b|\bretr(y|ies|ied) by hand\b|\ba hand can\b|\bwaits? for a hand\b/gi,
    'needs attention, an operator, manual retry',
  ],
]

const isProductText = (path: string) =>
  /^(src|workflows|activities|docs|migrations|test|clients|bench|faults|script)\/|^(README|CONTRIBUTING)\.md$/.test(path) &&
  // recorded by a program, with encoded payloads; and the words above, with their tests
  !/^test\/replay\/.*\.json$|\/check-conventions(\.test)?\.ts$/.test(path)

const lineOf = (text: string, index: number) => text.slice(0, index).split('\n').length

const findingsOf = ({ path, text }: SourceFile, rule: string, pattern: RegExp, describe: (match: string) => string): Finding[] =>
  [...text.matchAll(pattern)].map((match) => ({ path, line: lineOf(text, match.index), rule, text: describe(match[0]) }))

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

const inventedWords = (file: SourceFile): Finding[] =>
  words.flatMap(([pattern, use]) => [
    ...(file.path.search(pattern) < 0 ? [] : [{ path: file.path, line: 1, rule: 'words', text: `in the file name (use: ${use})` }]),
    ...findingsOf(file, 'words', pattern, (match) => `${match} (use: ${use})`),
  ])

const questionsMax = 4

/** A doc comment begins with a verb (of a function) or a noun (of a type). A few exceptions read better as a question. */
const questions = (files: SourceFile[]): Finding[] => {
  const found = files.flatMap((file) => findingsOf(file, 'doc-comments', /\/\*\*[\s*]*(What|Whether|Whoever)\b.*/g, oneLine))
  return found.length > questionsMax ? found : []
}

const machineNames = (file: SourceFile): Finding[] =>
  findingsOf(
    file,
    'machine',
    /(\/work\/|\/root\/|\/tmp\/bash_jobs|https?:\/\/(registry|proxy|sum|repo\d?|deb|pypi|index|static)\.).*/g,
    oneLine,
  )

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

const commentMax = 140

const longComments = ({ path, text }: SourceFile): Finding[] =>
  text
    .split('\n')
    .flatMap((line, index) =>
      line.length > commentMax && /^\s*(\/\/|\/\*|\*|--)/.test(line)
        ? [{ path, line: index + 1, rule: 'comment-length', text: `${line.length} characters, at most ${commentMax}` }]
        : [],
    )

/** Returns what breaks a convention, file by file. */
export const findingsIn = (all: SourceFile[]): Finding[] => {
  const product = all.filter(({ path }) => isProductText(path))
  return [
    ...product.flatMap(inventedWords),
    ...questions(product),
    ...all.flatMap(machineNames),
    ...all.filter(({ path }) => path.endsWith('.ts') && !/^(src\/delivery|test)\//.test(path)).flatMap(statusChanges),
    ...all.filter(({ path }) => path.startsWith('migrations/')).flatMap(unstatedContractions),
    ...all.filter(({ path }) => /^(src|workflows|activities)\//.test(path)).flatMap(longComments),
  ].toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
}

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
