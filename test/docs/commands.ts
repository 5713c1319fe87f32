import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** One command of a page: its program and arguments, without redirections and assignments. */
export interface PageCommand {
  path: string
  words: string[]
  /** True for a command of a fenced block. Inline code often names a command without its arguments. */
  isComplete: boolean
}

const commentedFiles = [
  'docker-compose.yml',
  'deploy/compose/one-machine.yml',
  'deploy/helm/document-relay/templates/NOTES.txt',
  'deploy/helm/document-relay/values.yaml',
]

/**
 * Returns the text of every page for readers, and of the files of deploy that say what to type. CHANGELOG.md is left out: it names what
 * former versions had.
 */
export const readPages = async (): Promise<{ path: string; text: string }[]> => {
  const docs = (await readdir(join(root, 'docs'), { recursive: true })).filter((path) => path.endsWith('.md')).toSorted()
  const paths = [
    'README.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'test/README.md',
    'clients/check-source/README.md',
    'clients/typescript/README.md',
    'clients/python/README.md',
    ...docs.map((path) => `docs/${path}`),
    ...commentedFiles,
  ]
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(root, path), 'utf8') })))
}

const fences = /^( *)```(\w*)\n(.*?)^\1```$/gms

/** Returns the fenced blocks of a page. */
export const blocksOf = (page: string): { language: string; content: string }[] =>
  [...page.matchAll(fences)].map(([, , language, content]) => ({ language: language!, content: content! }))

/** Returns every command of a page, from its fenced blocks of shell commands, its transcripts and its inline code. */
export const commandsOf = ({ path, text }: { path: string; text: string }): PageCommand[] => {
  if (!path.endsWith('.md')) {
    const lines = [...text.matchAll(/^ *(?:# +)?((?:docker compose|kubectl|helm) .*)$/gm)].map(([, line]) => line!)
    return lines.flatMap(splitCommands).map((words) => ({ path, words, isComplete: true }))
  }
  const fenced = blocksOf(text).flatMap(({ language, content }) => {
    if (language === 'sh' || language === 'bash') return splitCommands(content)
    if (language === 'text') return splitCommands([...content.matchAll(/^[$>] (.*)$/gm)].map(([, line]) => line).join('\n'))
    // Blocks without a language show directories, output, or commands of the repository's scripts.
    return language === '' ? splitCommands(content).filter(([program]) => program!.startsWith('script/')) : []
  })
  const inline = [...text.replaceAll(fences, '').matchAll(/(?<!`)`([^`]+)`(?!`)/g)].flatMap(([, code]) =>
    splitCommands(code!.replaceAll(/\s+/g, ' ').replace(/^ExecStart=/, '')),
  )
  return [...fenced.map((words) => ({ path, words, isComplete: true })), ...inline.map((words) => ({ path, words, isComplete: false }))]
}

const keyword = /^(do|then|else|if|until|while|!|exec|export|[A-Za-z_]\w*=.*)$/s

/** Splits a shell script into its commands, and each command into words. Commands in `$(...)` also count. */
export const splitCommands = (script: string): string[][] => {
  const plain = script.replaceAll(/\\\n\s*/g, ' ').replaceAll(/<<['"]?(\w+)['"]?([^\n]*)\n.*?\n\1(?=\n|$)/gs, '$2')
  const commands: string[][] = [[]]
  let word: string | undefined
  const endWord = () => {
    if (word !== undefined) commands.at(-1)!.push(word)
    word = undefined
  }
  const token =
    /(?<comment>(?<=^|\s)#[^\n]*)|(?<blank>[ \t]+)|(?<redirect>\d?[<>]+&?\s*[^\s;|&()]*)|(?<end>\$\(|[\n;|&()]+)|'(?<single>[^']*)'|"(?<double>(?:\\.|[^"\\])*)"|\\(?<escaped>.)|(?<rest>[^\s'"\\;|&()<>$]+|.)/gs
  const nested: string[][] = []
  for (const { groups } of plain.matchAll(token)) {
    const { comment, blank, redirect, end, single, double, escaped, rest } = groups!
    if (comment !== undefined || blank !== undefined || redirect !== undefined) {
      endWord()
    } else if (end !== undefined) {
      endWord()
      commands.push([])
    } else {
      for (const [, inner] of double?.matchAll(/\$\(([^()]*)\)/g) ?? []) nested.push(...splitCommands(inner!))
      word = (word ?? '') + (single ?? double ?? escaped ?? rest)
    }
  }
  endWord()
  const withoutKeywords = commands.map((words) => {
    const first = words.findIndex((each) => !keyword.test(each))
    return first < 0 ? [] : words.slice(first)
  })
  return [...withoutKeywords, ...nested].map(withoutWrapper).filter((words) => words.length > 0)
}

/** Returns the command that another program starts: npx, nice, kubectl, or docker with an image or a container of the relay. */
const withoutWrapper = (words: string[]): string[] => {
  const [program, verb] = words
  if (program === 'npx') return words.slice(1)
  if (program === 'nice') return words.slice(words[1] === '-n' ? 3 : 1)
  if (program === 'kubectl' && words.includes('--')) return words.slice(words.indexOf('--') + 1)
  if (program !== 'docker') return words
  if (verb === 'exec') return words.slice(3)
  const image = words.findIndex((each) => each.startsWith('document-relay:'))
  return verb === 'run' && image > 0 && !words.includes('--entrypoint') ? ['relay', ...words.slice(image + 1)] : words
}
