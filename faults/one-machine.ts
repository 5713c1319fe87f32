import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { identifyProcess, readPidFile } from '../src/programs/orphaned-processes.ts'
import { isListening } from '../src/programs/ports.ts'
import type { TemporalServer } from './temporal.ts'

const notHere = () => Promise.reject(new Error('the state of this Temporal is in the database of the relay'))

/** Returns the Temporal that `relay server` runs on one machine. The relay starts it again itself. */
export const temporalOfMachine = (dataDir: string): TemporalServer => {
  const folder = join(dataDir, 'temporal')
  const port = () => Number(readFileSync(join(folder, 'frontend.port'), 'utf8'))
  const pid = () => readPidFile(join(folder, 'temporal.pid'))
  let former: number | undefined
  const signal = async (name: NodeJS.Signals) => {
    former = await pid()
    try {
      if (former !== undefined) process.kill(former, name)
    } catch (thrown) {
      // The relay may have killed it.
      if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
    }
  }
  return {
    port,
    kill: async () => {
      await signal('SIGKILL')
      const isRunning = async () => former !== undefined && (await identifyProcess(former)) !== undefined
      while (await isRunning()) await pause(20)
    },
    /** Waits until the relay has started it. */
    start: async () => {
      for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(100)) {
        const current = await pid()
        if (current !== undefined && current !== former && (await isListening(port()))) return
      }
      throw new Error('The relay has not started Temporal again')
    },
    freeze: () => signal('SIGSTOP'),
    thaw: async () => {
      // One that the relay has killed in the meantime needs no thawing, and the next one is not frozen.
      const frozen = former
      if (frozen !== undefined && (await pid()) === frozen) await signal('SIGCONT')
    },
    backUp: notHere,
    restore: notHere,
    erase: notHere,
    stop: async () => {},
  }
}
