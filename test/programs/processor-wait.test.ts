import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { processorWaitMs } from '../../src/programs/processor-wait.ts'

/** Starts a process that never rests, on the first processor alone. */
const startBusy = async (): Promise<ChildProcess & AsyncDisposable> => {
  const child = spawn('taskset', ['--cpu-list', '0', process.execPath, '-e', "console.log('busy'); for (;;);"], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await once(child.stdout, 'data')
  return Object.assign(child, {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  })
}

test('a process waits while another one has its processor, and neither while it is stopped nor when it is gone', async () => {
  await using starved = await startBusy()
  await using other = await startBusy()
  expect(other.exitCode).toBeNull()
  const before = await processorWaitMs(starved.pid!)
  while ((await processorWaitMs(starved.pid!)) < before + 200) await delay(20)
  starved.kill('SIGSTOP')
  await delay(50)
  const stopped = await processorWaitMs(starved.pid!)
  await delay(300)
  expect(await processorWaitMs(starved.pid!)).toBe(stopped)
  expect(await processorWaitMs(2 ** 30)).toBe(0)
}, 30_000)
