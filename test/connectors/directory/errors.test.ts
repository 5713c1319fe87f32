import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createArchive } from './rig.ts'

const run = promisify(execFile)

/** Returns the outcomes by error and by state of the folder, one for each call that fails. */
const deliverWithErrors = async (...codes: string[]): Promise<Record<string, string[]>> => {
  const scene = await createArchive()
  const script = new URL('./deliver-with-errors.ts', import.meta.url).pathname
  const { stdout } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', script, scene.root, scene.archive, ...codes])
  await scene.remove()
  return JSON.parse(stdout) as Record<string, string[]>
}

test.each([
  ['EIO', 'file_system_failure, retried'],
  ['ESTALE', 'file_system_failure, retried'],
  ['ETIMEDOUT', 'file_system_failure, retried'],
  ['ENOSPC', 'storage_full, retried'],
  // Not that the path is not allowed, which the operator would look for in the settings.
  ['EACCES', 'permission_denied, final'],
])('%s of each call in turn is what the attempt says, and the next one leaves one document', async (code, outcome) => {
  const told = await deliverWithErrors(code)
  const asItShouldBe = new RegExp(`^\\w+: (?:delivered|${outcome}); then delivered: data, content$`)
  for (const lines of Object.values(told)) {
    expect(lines.length).toBeGreaterThan(20)
    expect(lines.filter((line) => !asItShouldBe.test(line))).toEqual([])
  }
})

test('an error of creating a folder which exists does not fail the delivery', async () => {
  const told = await deliverWithErrors('EACCES', 'EROFS')
  for (const name of ['EACCES, again', 'EROFS, again', 'EACCES, late']) {
    expect(told[name]!.filter((line) => line.startsWith('mkdir'))).toEqual(['mkdir: delivered; then delivered: data, content'])
  }
})
