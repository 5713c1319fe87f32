import { setTimeout as pause } from 'node:timers/promises'
import type { Workspace } from './load.ts'

const intervalMs = 200
const answerMaxMs = 5_000

interface Answered {
  requests: number
  /** Not answered in time, or otherwise than 2xx. */
  refused: string[]
  slowestMs: number
}

/** Sends requests that do not need what is at fault, in turn to each API process, until it is stopped. */
export const startBystander = (baseUrls: string[], { apiPath, key, path, repositories }: Workspace) => {
  const stopped = new AbortController()
  const requests = [
    { path: `${apiPath}/destinations`, headers: { authorization: `Bearer ${key}` } },
    { path: `${apiPath}/documents`, headers: { authorization: `Bearer ${key}` } },
    { path: `${path}?serverInfo&pVersion=0045&contRep=${repositories.open}`, headers: {} },
  ]
  const answered: Answered = { requests: 0, refused: [], slowestMs: 0 }

  const ask = async (number: number) => {
    const { path: wanted, headers } = requests[number % requests.length]!
    const startedAt = performance.now()
    answered.requests += 1
    try {
      const url = `${baseUrls[Math.floor(number / requests.length) % baseUrls.length]}${wanted}`
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(answerMaxMs) })
      await response.arrayBuffer()
      if (!response.ok) answered.refused.push(`${wanted.split('?')[0]}: ${response.status}`)
    } catch (thrown) {
      answered.refused.push(`${wanted.split('?')[0]}: ${thrown instanceof Error ? thrown.name : String(thrown)}`)
    }
    answered.slowestMs = Math.max(answered.slowestMs, performance.now() - startedAt)
  }
  const asking = (async () => {
    for (let number = 0; !stopped.signal.aborted; number += 1) {
      await ask(number)
      await pause(intervalMs)
    }
  })()

  return {
    stop: async (): Promise<Answered> => {
      stopped.abort()
      await asking
      return answered
    },
  }
}
