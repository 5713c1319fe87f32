import { execFile } from 'node:child_process'
import { copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createFolder } from '../support/folder.ts'
import { hostileTexts, wrongIn } from '../support/hostile-text.ts'
import { share } from '../support/share.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { path: folder } = share(await createFolder())
await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
for (const module of ['log.ts', 'text.ts']) await copyFile(join(root, 'src/base', module), join(folder, module))

/** Runs a program in an installation with these packages. @returns its log */
const logOf = async (program: string, packages: string[]): Promise<string> => {
  await rm(join(folder, 'node_modules'), { recursive: true, force: true })
  await mkdir(join(folder, 'node_modules'))
  for (const name of packages) await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  const script = `import { createLog, openLog } from './log.ts'; ${program}`
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script]
  return (await promisify(execFile)(process.execPath, options, { cwd: folder, env: { ...process.env, NO_COLOR: '1' } })).stderr
}

const writePretty = (...packages: string[]) => logOf(`(await openLog('info', 'pretty')).info({ port: 8080 }, 'ready')`, packages)

test('the log for people is text', async () => {
  expect(await writePretty('pino', 'pino-pretty')).toMatch(/^\[[\d:.]+\] INFO: ready \{"port":8080\}\n$/)
})

test('without the optional pino-pretty it is JSON, whose first line says so', async () => {
  const lines = (await writePretty('pino')).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'warn', msg: 'the log is written as JSON: pino-pretty, which writes it as text, is not installed' }),
    expect.objectContaining({ level: 'info', msg: 'ready', port: 8080 }),
  ])
})

const hostile = Object.values(hostileTexts).filter((text) => text.length < 2_000)

test.each(['json', 'pretty'])(
  'no text in a log of the format %s is obeyed by a terminal, and none makes a line of its own',
  async (format) => {
    const program = `
    const log = await openLog('info', '${format}')
    for (const text of ${JSON.stringify(hostile)}) log.warn({ reason: text, inner: { text }, err: new Error(text) }, text)`
    const log = await logOf(program, ['pino', 'pino-pretty'])
    expect(wrongIn(log, { lines: true })).toEqual([])
    expect(log).not.toMatch(/^\s*What to do:/m)
    if (format === 'json') {
      const lines = log.trim().split('\n')
      expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(hostile)
    }
  },
)
