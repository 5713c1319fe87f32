import { readFile } from 'node:fs/promises'
import { nextVersion } from '../../faults/build.ts'
import { machineCommands } from '../../faults/production-machine.ts'
import { blockName, type Block } from '../../faults/production-site.ts'
import { backupBlocks } from '../../faults/production.ts'
import { createTranscript, plainOutput, transcriptMarkdown } from '../../faults/transcript.ts'
import { backupSteps } from '../docs/backup-commands.ts'

// script/production takes minutes and is run by hand. These tests hold what it relies on, and what it has written.

const blocks: Block[] = Object.values(backupBlocks).flat()
const read = (path: string) => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')
const page = await read('measurements/production.md')

test('every command that script/production takes from docs/backup.md stands there', async () => {
  const steps = await backupSteps()
  for (const [heading, block] of blocks) {
    const found = steps.filter((step) => step.heading === heading)
    expect({ heading, has: found.length > (block ?? 0) }).toEqual({ heading, has: true })
  }
})

test('the transcript in docs/measurements/production.md names every block of docs/backup.md that was run, in this order', () => {
  const named = page.split('\n').filter((line) => line.startsWith('$ # backup.md, '))
  expect(named).toEqual(blocks.map((block) => `$ ${blockName(block)}`))
})

test('the transcript of one machine has the commands of docs/one-machine.md, as they stand there', async () => {
  const { backUp, restore } = await machineCommands()
  expect(backUp).toMatch(/^pg_dump /)
  expect(restore).toMatch(/^pg_restore /)
  const own = page.slice(page.indexOf('## One machine'))
  const commands = own.split('\n').filter((line) => line.startsWith('$ ') && !line.startsWith('$ npm '))
  expect(commands).toEqual([`$ ${backUp}`, `$ ${restore}`])
})

test('docs/measurements/production.md shows a run whose every count met its goal, without names of the machine', () => {
  const rows = page.split('\n').filter((line) => / \| (met|MISSED) \|$/.test(line))
  expect(rows.length).toBeGreaterThan(30)
  expect(rows.filter((row) => !row.endsWith('| met |'))).toEqual([])
  for (const name of ['**lost**', '**altered**', '**lost** of those before the backup']) expect(rows).toContain(`| ${name} | 0 | 0 | met |`)
  expect(page).not.toMatch(/127\.0\.0\.1:\d|\/tmp\/|\/home\/|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/)
})

test('docs/reliability.md states the numbers of the transcript', async () => {
  const text = (await read('reliability.md')).replaceAll(/\s+/g, ' ')
  const [, date, commit] = /^Last run: (\S+), commit (\w+),/m.exec(page)!
  expect(text).toContain(`(${date}, commit ${commit})`)
  const of = (name: string) => new RegExp(`^\\| ${name} \\| (\\d+) `, 'm').exec(page)![1]!
  expect(text).toContain(
    `${of('documents acknowledged')} documents were acknowledged, ${of('... while the processes were replaced')} of them while all processes were ` +
      `replaced, and ${of('... since the backup began')} since the backup began. ${of('deliveries open at the loss')} deliveries were open`,
  )
  expect(text).toContain(`${of('delivered twice by the restore')} document was delivered twice by the restore`)
})

test('an output is printed without addresses, times and ids, and without its middle', () => {
  expect(plainOutput('at 127.0.0.1:5432, 2026-11-23 12:00:00.123+00\n\nid 01KAMV2R3N4P5Q6R7S8T9VABCD in 12.3s.....\n')).toEqual([
    'at <address>, <time>',
    'id <id> in 12 s...',
  ])
  expect(plainOutput('/somewhere/backup/wal', [['/somewhere/backup', '$BACKUP']])).toEqual(['$BACKUP/wal'])
  expect(plainOutput('ok    node: v24\nwarn  clock: late\n      Do: Set it.\nok    schema: up to date')).toEqual([
    'ok    2 checks',
    'warn  clock: late',
  ])
  expect(plainOutput('ALTER SYSTEM\nALTER SYSTEM\n')).toEqual(['ALTER SYSTEM'])
  const lines = plainOutput(Array.from({ length: 100 }, (_, index) => `line ${index}`).join('\n'))
  expect(lines).toHaveLength(17)
  expect(lines[8]).toBe('... (84 more lines)')
})

test('a transcript has a block of text for each step, and a table that names what missed its goal', () => {
  const said: string[] = []
  const transcript = createTranscript((line) => said.push(line))
  transcript.rename('/somewhere', '.')
  transcript.begin('Install', 'It is installed.')
  transcript.command('cd folder\nls /somewhere\n')
  transcript.output('/somewhere/a\n')
  transcript.note('Done.')
  const counts = [
    { name: 'lost', value: 0, goal: '0', isMet: true },
    { name: 'altered', value: 2, goal: '0', isMet: false },
  ]
  const text = transcriptMarkdown(transcript.steps, counts, 'today')
  expect(text).toContain('**1. Install.** It is installed.\n\n```text\n$ cd folder\n> ls /somewhere\n./a\n-- Done.\n```\n')
  expect(text).toContain('| lost | 0 | 0 | met |\n| altered | 2 | 0 | MISSED |\n')
  expect(said).toContain('./a')
})

test('the second package has the next patch version', () => {
  expect([nextVersion('0.1.0').version, nextVersion('1.2.9').version]).toEqual(['0.1.1', '1.2.10'])
})
