import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

// Leaves garbage in the main thread and in another one, as loading a program does: objects that live for a while, so that the young generation
// grows. Prints the resident memory before, and after each of them was collected.
const program = `
  import { once } from 'node:events'
  import { Worker } from 'node:worker_threads'
  const { collectStartGarbage } = await import(process.argv[1])
  const leaveGarbage = () => {
    for (let round = 0; round < 20; round += 1) Array.from({ length: 200_000 }, (_, number) => ({ number, round }))
  }
  const inThread =
    '(' + leaveGarbage + ')(); process.getBuiltinModule("node:worker_threads").parentPort.on("message", () => {}).postMessage("left")'
  const rssMiB = () => process.memoryUsage.rss() / 1_048_576
  if (process.argv[2] === 'thread') await once(new Worker(inThread, { eval: true }), 'message')
  else leaveGarbage()
  const left = rssMiB()
  await collectStartGarbage()
  console.log(JSON.stringify({ left, kept: rssMiB() }))
  process.exit()`

const module = new URL('../../src/cli/start-garbage.ts', import.meta.url).href

test.each(['main', 'thread'])('the garbage of a start is given back: that of the %s', async (thread) => {
  const options = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program, module, thread]
  const { stdout } = await promisify(execFile)(process.execPath, options)
  const { left, kept } = JSON.parse(stdout) as { left: number; kept: number }
  expect(left - kept).toBeGreaterThan(20)
})
