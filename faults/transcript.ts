import { markdownTable } from '../docs/generated-table.ts'

/** A step of a transcript: what was run, and what came out. */
export interface TranscriptStep {
  title: string
  /** A sentence about the step. */
  note: string
  lines: string[]
}

/** A number of the closing table. */
export interface Count {
  name: string
  value: number
  goal: string
  isMet: boolean
}

export interface Transcript {
  steps: TranscriptStep[]
  /** Begins a step. */
  begin(title: string, note: string): void
  /** Adds commands as they were run. */
  command(text: string): void
  /** Adds the output of a command, without what differs in every run. */
  output(text: string): void
  /** Adds an observation. */
  note(text: string): void
  /** Replaces a text of this machine, for example a folder, by a name in everything that is added later. */
  rename(text: string, name: string): void
}

/** More of an output is left out. */
const outputMaxLines = 16
const lineMaxCharacters = 180

/** Texts that differ in every run. */
const variable: [RegExp, string][] = [
  [/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d(:?\d\d)?|Z| [A-Z]{3,4})?/g, '<time>'],
  [/\d{8}T\d{6}(\.\d+)?Z/g, '<time>'],
  [/\b(127\.0\.0\.1|localhost):\d+/g, '<address>'],
  [/\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g, '<id>'],
  [/\.{4,}/g, '...'],
  [/(\d+)\.\d+ ?s\b/g, '$1 s'],
]

const shortened = (line: string) => (line.length > lineMaxCharacters ? `${line.slice(0, lineMaxCharacters)} ...` : line)

/** Replaces the lines of the checks of `relay doctor` that found nothing by their number, and leaves out its advice. */
const withoutPassedChecks = (lines: string[]): string[] => {
  const others = lines.filter((line) => !line.startsWith('ok    '))
  if (others.length === lines.length) return lines
  return [`ok    ${lines.length - others.length} checks`, ...others.filter((line) => !line.startsWith('      Do: '))]
}

const withoutRepetitions = (lines: string[]): string[] => lines.filter((line, index) => line !== lines[index - 1])

/** Returns an output without the texts that differ in every run, and without its middle if it is long. */
export const plainOutput = (text: string, names: [text: string, name: string][] = []): string[] => {
  const named = names.reduce((rest, [from, to]) => rest.replaceAll(from, to), text)
  const lines = withoutRepetitions(
    withoutPassedChecks(
      variable
        .reduce((rest, [pattern, name]) => rest.replaceAll(pattern, name), named)
        .split('\n')
        .map((line) => shortened(line.trimEnd()))
        .filter((line) => line !== ''),
    ),
  )
  if (lines.length <= outputMaxLines) return lines
  return [...lines.slice(0, outputMaxLines / 2), `... (${lines.length - outputMaxLines} more lines)`, ...lines.slice(-outputMaxLines / 2)]
}

/** Starts a transcript. @param say is called with each line as it is added */
export const createTranscript = (say: (line: string) => void): Transcript => {
  const steps: TranscriptStep[] = []
  const names: [text: string, name: string][] = []
  const add = (lines: string[]) => {
    for (const line of lines) say(line)
    steps.at(-1)!.lines.push(...lines)
  }
  return {
    steps,
    begin: (title, note) => {
      steps.push({ title, note, lines: [] })
      say(`\n${steps.length}. ${title}`)
    },
    command: (text) =>
      add(
        text
          .trimEnd()
          .split('\n')
          .map((line, index) => `${index === 0 ? '$' : '>'} ${line}`),
      ),
    output: (text) => add(plainOutput(text, names)),
    note: (text) => add([`-- ${text}`]),
    rename: (text, name) => void names.push([text, name]),
  }
}

/** Returns the transcript and the table of counts in Markdown. */
export const transcriptMarkdown = (steps: TranscriptStep[], counts: Count[], conditions: string): string =>
  [
    '',
    `Last run: ${conditions}.`,
    '',
    ...steps.flatMap(({ title, note, lines }, index) => [`**${index + 1}. ${title}.** ${note}`, '', '```text', ...lines, '```', '']),
    markdownTable(
      ['count', 'result', 'goal', ''],
      counts.map(({ name, value, goal, isMet }) => [name, String(value), goal, isMet ? 'met' : 'MISSED']),
    ),
  ].join('\n')
