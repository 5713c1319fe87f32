import { markdownTable, withGenerated } from '../docs/generated-table.ts'
import { recoveryGoalSeconds, type Outcome } from './run-row.ts'

export interface Conditions {
  commit: string
  hardware: string
  seed: string
  form: 'short' | 'long'
  date: string
  minutes: number
}

/** Returns true if a row misses a goal, and is not known to. */
export const isShortfall = ({ row, shortfalls }: Outcome): boolean => shortfalls.length > 0 && row.known === undefined

const verdictOf = (outcome: Outcome): string => {
  if (outcome.notRun !== undefined) return 'not run'
  if (outcome.shortfalls.length === 0) return 'met'
  return outcome.row.known === undefined ? 'MISSED' : 'known'
}

const header = ['row', 'acknowledged', 'lost', 'altered', 'duplicated', 'stuck', 'terminated', 'refused', 'recovered (s)', 'goal']

const cellsOf = (outcome: Outcome): string[] => {
  const { row, counts, terminated, recoverySeconds } = outcome
  const numbers = counts
    ? [counts.acknowledged, counts.lost, counts.altered, counts.duplicated, counts.stuck, terminated, counts.refused].map(String)
    : Array.from({ length: 7 }, () => '-')
  return [row.name, ...numbers, recoverySeconds?.toFixed(1) ?? '-', verdictOf(outcome)]
}

const reasonsOf = (outcome: Outcome): string[] => {
  const { row, counts, terminated = 0, shortfalls, notRun } = outcome
  if (notRun !== undefined) return [`not run: ${notRun}`]
  return [
    ...(shortfalls.length > 0 ? [shortfalls.join(', ')] : []),
    ...(shortfalls.length > 0 && row.known !== undefined ? [`known: ${row.known}`] : []),
    ...((counts?.duplicated ?? 0) > 0 && row.mayDuplicate !== undefined ? [`duplicates: ${row.mayDuplicate}`] : []),
    ...(terminated > 0 && row.mayTerminate !== undefined ? [`terminated: ${row.mayTerminate}`] : []),
  ]
}

/** Returns one line for the progress of a run. */
export const summaryOf = (outcome: Outcome): string => {
  const { counts, terminated, recoverySeconds, row } = outcome
  const numbers = counts
    ? `${counts.acknowledged} acknowledged, ${counts.lost} lost, ${counts.altered} altered, ${counts.duplicated} duplicated, ` +
      `${counts.stuck} stuck, ${terminated} terminated, ${counts.refused} refused, recovered in ${recoverySeconds?.toFixed(1) ?? '?'} s`
    : ''
  return `${verdictOf(outcome).padEnd(7)} ${row.name}: ${[numbers, ...reasonsOf(outcome)].filter(Boolean).join('. ')}`
}

const conditionsText = ({ commit, hardware, seed, form, date, minutes }: Conditions) =>
  `${date}, commit ${commit}, ${form} form, seed ${seed}, ${minutes} minutes, on ${hardware}`

const totalsOf = (verdicts: string[]) => {
  const count = (verdict: string) => verdicts.filter((each) => each === verdict).length
  return (
    `${verdicts.length - count('not run')} rows run: ${count('met')} met every goal, ${count('known')} are known to fall short, ` +
    `${count('MISSED')} missed a goal; ${count('not run')} not run`
  )
}

/** Returns the table for a terminal. */
export const textTable = (outcomes: Outcome[], conditions: Conditions): string => {
  const lines = [header, ...outcomes.map(cellsOf)]
  const widths = header.map((_, column) => Math.max(...lines.map((cells) => cells[column]!.length)))
  const text = lines.map((cells) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '),
  )
  const notes = outcomes.flatMap((outcome) => reasonsOf(outcome).map((reason) => `${outcome.row.name}: ${reason}`))
  return [conditionsText(conditions), '', ...text, '', ...notes, totalsOf(outcomes.map(verdictOf))].join('\n')
}

const noteOf = (name: string, text: string) => `- \`${name}\`: ${text}`

/** Returns the reason why a row is known to fall short as a line of its own, and everything else as one. */
const notesOf = (name: string, texts: string[]): string[] => {
  const [known, others] = [true, false].map((isKnown) => texts.filter((text) => text.startsWith('known: ') === isKnown)) as [
    string[],
    string[],
  ]
  return [...(others.length > 0 ? [noteOf(name, others.join('; '))] : []), ...known.map((text) => noteOf(name, text))]
}

/** Returns the lines of a row that was not run this time. */
const linesOf = (page: string, name: string) => {
  const lines = page.split('\n')
  const start = noteOf(name, '')
  const notes = lines.flatMap((line) => (line.startsWith(start) ? [line.slice(start.length)] : []))
  return [...lines.filter((line) => line.startsWith(`| \`${name}\` |`)), ...notesOf(name, notes)]
}

/**
 * Writes the table into docs/measurements/faults.md.
 * @param names of the rows of the table. Rows that were not run this time stay as they are
 */
export const faultsPage = (page: string, names: string[], outcomes: Outcome[], conditions: Conditions): string => {
  const lines = names.flatMap((name) => {
    const outcome = outcomes.find(({ row }) => row.name === name)
    if (!outcome) return linesOf(page, name)
    const cells = cellsOf(outcome)
    return [
      `| ${[`\`${name}\``, outcome.row.fault, ...cells.slice(1, -1), conditions.commit, cells.at(-1)].join(' | ')} |`,
      ...notesOf(name, [...reasonsOf(outcome), ...outcome.findings]),
    ]
  })
  const rows = lines.filter((line) => line.startsWith('|'))
  const verdicts = rows.map((line) => line.split(' | ').at(-1)!.replace(' |', ''))
  const text = [
    '',
    `Last run on ${conditionsText(conditions)}. ${totalsOf(verdicts)}. Goal: 0 lost, 0 altered, 0 stuck, 0 terminated by the relay, recovered within ${recoveryGoalSeconds} s.`,
    '',
    markdownTable(['row', 'fault, and how it ends', ...header.slice(1, -1), 'commit', 'goal'], []).trimEnd(),
    ...rows,
    '',
    ...lines.filter((line) => line.startsWith('-')),
    '',
  ].join('\n')
  return withGenerated(page, 'faults', text, 'script/faults --write-docs')
}
