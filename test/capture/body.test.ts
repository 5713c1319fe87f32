import { createCaptureMemory } from '../../src/capture/body.ts'

describe('the memory for captures', () => {
  /** Reserves single bytes until no more are left for the source. @returns how many bytes it has got */
  const fill = (memory: ReturnType<typeof createCaptureMemory>, source: string, what: 'body' | 'head' = 'body') => {
    let bytes = 0
    while (memory.of(source).reserve(1, what)) bytes += 1
    return bytes
  }

  test('gives one source half, and every further source a share of what is free', () => {
    const memory = createCaptureMemory(1_200)
    expect([fill(memory, 'A'), fill(memory, 'B'), fill(memory, 'C')]).toEqual([600, 300, 150])
    expect(fill(memory, 'A')).toBe(0)
  })

  test('gives two sources that take turns a third each', () => {
    const memory = createCaptureMemory(1_200)
    const [one, other] = [memory.of('A'), memory.of('B')]
    let bytes = 0
    while (one.reserve(1, 'body') && other.reserve(1, 'body')) bytes += 1
    expect(bytes).toBe(400)
  })

  test('has room for the heads of a source whose bodies have used their share, and then for another source', () => {
    const memory = createCaptureMemory(1_200)
    expect([fill(memory, 'A'), fill(memory, 'A', 'head')]).toEqual([600, 300])
    expect([fill(memory, 'A', 'head'), fill(memory, 'B'), fill(memory, 'C', 'head')]).toEqual([0, 150, 112])
  })

  test('gives released memory to others', () => {
    const memory = createCaptureMemory(100)
    const source = memory.of('A')
    expect([source.reserve(50, 'body'), source.reserve(1, 'body')]).toEqual([true, false])
    source.release(50)
    expect(fill(memory, 'B')).toBe(50)
  })
})
