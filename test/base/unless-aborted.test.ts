import { unlessAborted } from '../../src/base/unless-aborted.ts'

describe('waiting for work until a signal', () => {
  test('returns the result, or throws the failure', async () => {
    const { signal } = new AbortController()
    expect(await unlessAborted(async () => 1, signal)).toBe(1)
    expect(await unlessAborted(async () => 1, undefined)).toBe(1)
    await expect(unlessAborted(() => Promise.reject(new Error('it failed')), signal)).rejects.toThrow('it failed')
  })

  test('ends with the reason of the signal', async () => {
    const stop = new AbortController()
    const waiting = unlessAborted(() => new Promise(() => {}), stop.signal)
    stop.abort(new Error('nobody waits'))
    await expect(waiting).rejects.toThrow('nobody waits')
  })

  test('does not begin the work if the signal is aborted already', async () => {
    let isBegun = false
    const begin = async () => {
      isBegun = true
      throw new Error('nobody handles this')
    }
    await expect(unlessAborted(begin, AbortSignal.abort(new Error('nobody waits')))).rejects.toThrow('nobody waits')
    expect(isBegun).toBe(false)
  })
})
