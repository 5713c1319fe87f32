import { setTimeout as delay } from 'node:timers/promises'

// the disk of a busy machine can stand still for half a minute; only a test that fails waits as long
const usualPatienceMs = 60_000

/** Asks until the answer is as wanted: true, where nothing else is said. @returns the answer */
export const until = async <T>(
  what: string,
  ask: () => Promise<T> | T,
  isSo: (answer: T) => boolean = Boolean,
  patienceMs = usualPatienceMs,
): Promise<T> => {
  for (const deadline = Date.now() + patienceMs; ; await delay(25)) {
    const answer = await ask()
    if (isSo(answer)) return answer
    if (Date.now() > deadline) throw new Error(`never came: ${what}; at last ${JSON.stringify(answer)}`)
  }
}
