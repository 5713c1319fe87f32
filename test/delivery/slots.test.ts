import { createSlots } from '../../src/delivery/slots.ts'

/** Takes places until none is given any more. @returns the number */
const fill = (slots: ReturnType<typeof createSlots>, workspace: string, destinationId: string): number => {
  let taken = 0
  while (slots.acquire({ workspace, destinationId })) taken += 1
  return taken
}

describe('the places of a worker', () => {
  test('go to one workspace up to a half, and to further ones up to a half of the rest', () => {
    const slots = createSlots(100)
    const taken = ['a', 'b', 'c', 'd'].map((workspace) => {
      let sum = 0
      for (let destination = 0; destination < 200; destination += 1) sum += fill(slots, workspace, `${workspace}${destination}`)
      return sum
    })
    expect(taken).toEqual([50, 25, 12, 6])
  })

  test('go to one destination up to a half of what its workspace may take', () => {
    const slots = createSlots(100)
    expect(Array.from({ length: 12 }, (_, destination) => fill(slots, 'a', `target ${destination}`))).toEqual([
      25, 13, 6, 3, 2, 1, 0, 0, 0, 0, 0, 0,
    ])
    expect(fill(slots, 'b', 'archive')).toBe(13)
  })

  test('go to a workspace that runs nothing as long as any is free', () => {
    const slots = createSlots(4)
    const releases = ['a', 'b', 'c', 'd'].map((workspace) => slots.acquire({ workspace, destinationId: 'archive' }))
    expect(releases.every(Boolean)).toBe(true)
    expect(slots.acquire({ workspace: 'e', destinationId: 'archive' })).toBeUndefined()
    releases[0]!()
    releases[0]!()
    expect(slots.acquire({ workspace: 'e', destinationId: 'archive' })).toBeDefined()
    expect(slots.acquire({ workspace: 'a', destinationId: 'archive' })).toBeUndefined()
  })

  test('are free again when attempts end', () => {
    const slots = createSlots(10)
    const releases = Array.from({ length: 3 }, () => slots.acquire({ workspace: 'a', destinationId: 'archive' })!)
    expect(slots.acquire({ workspace: 'a', destinationId: 'archive' })).toBeUndefined()
    for (const release of releases) release()
    expect(fill(slots, 'a', 'archive')).toBe(3)
  })

  test('are given to an attempt that goes on with an upload, however many are taken', () => {
    const slots = createSlots(2)
    fill(slots, 'a', 'archive')
    expect(slots.acquire({ workspace: 'a', destinationId: 'archive' })).toBeUndefined()
    expect(slots.acquire({ workspace: 'a', destinationId: 'archive', resumes: true })).toBeDefined()
  })
})
