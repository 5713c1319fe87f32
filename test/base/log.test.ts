import { execFile } from 'node:child_process'
import { copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const { path: folder } = share(await createFolder())
await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
await copyFile(join(root, 'src/base/log.ts'), join(folder, 'log.ts'))

/** Writes a line in the pretty format, in an installation with these packages. */
const writePretty = async (...packages: string[]): Promise<string> => {
  await rm(join(folder, 'node_modules'), { recursive: true, force: true })
  await mkdir(join(folder, 'node_modules'))
  for (const name of packages) await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  const script = `import { openLog } from './log.ts'; (await openLog('info', 'pretty')).info({ port: 8080 }, 'ready')`
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script]
  return (await promisify(execFile)(process.execPath, options, { cwd: folder, env: { ...process.env, NO_COLOR: '1' } })).stderr
}

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
