import { readFile } from 'node:fs/promises'
import { inflateSync } from 'node:zlib'
import { createBodies } from '../../bench/neighbours/bodies.ts'
import { startNoise } from '../../bench/neighbours/noise.ts'
import { noises } from '../../bench/neighbours/noises.ts'
import type { Sample, Times } from '../../bench/neighbours/quiet.ts'
import { comparison, figuresOf, figureText, tableRow, verdictText, type NoiseRow } from '../../bench/neighbours/verdict.ts'
import { until } from '../support/until.ts'

const timesOf = (ms: number): Times => ({ create: [ms], get: [ms], arrival: [ms] })
const sample = (relayMs: number, bareMs: number): Sample => ({ relay: timesOf(relayMs), bare: timesOf(bareMs), refused: 0 })
/** The figures of a quiet workspace that takes 10 ms alone, as a bare program does. */
const besides = (relayMs: number, bareMs: number) => figuresOf([sample(10, 10), sample(10, 10)], sample(relayMs, bareMs))
const met = (relayMs: number, bareMs: number) => Object.fromEntries(besides(relayMs, bareMs).map(({ probe, isMet }) => [probe, isMet]))

describe('a quiet workspace beside a noise', () => {
  test('is compared with the times before and after it, which count together', () => {
    const [create] = figuresOf([sample(10, 4), sample(30, 4)], sample(60, 6))
    expect(create).toMatchObject({ probe: 'create', aloneP50Ms: 30, aloneP95Ms: 30, besideP95Ms: 60, ratio: 2, bareRatio: 1.5 })
  })

  test('meets the goal up to twice the time alone', () => {
    expect(met(20, 10)).toEqual({ create: true, get: true, arrival: true })
    expect(met(21, 10)).toEqual({ create: false, get: false, arrival: false })
  })

  test('meets it where the bare program has lost as much, and from answer to arrival up to 1.5 times its time', () => {
    expect(met(40, 40)).toEqual({ create: true, get: true, arrival: true })
    expect(met(60, 40)).toEqual({ create: false, get: false, arrival: true })
    expect(met(61, 40)).toEqual({ create: false, get: false, arrival: false })
  })

  test('has no figure for what was not measured', () => {
    const reads = (ms: number): Sample => ({ relay: { create: [], get: [ms], arrival: [] }, bare: timesOf(ms), refused: 0 })
    expect(figuresOf([reads(10)], reads(15)).map(({ probe, ratio }) => [probe, ratio])).toEqual([['get', 1.5]])
  })
})

describe('the table', () => {
  const row = (build: 'before' | 'after', relayMs: number): NoiseRow => {
    return { noise: 'flood', text: '60 a second', build, figures: besides(relayMs, 10), refused: 0, facts: '1,500 x 201' }
  }

  test('has median and 95th percentile alone and beside, and both ratios', () => {
    expect(figureText(besides(1234, 15)[0]!)).toBe('10 / 10 to 1,234 / 1,234 ms: 123 (bare 1.5)')
    expect(tableRow(row('after', 15))).toMatchObject({ case: 'flood, after', noise: '1,500 x 201', goal: 'met' })
    expect(verdictText(row('after', 50))).toBe('missed: create, get, arrival')
    expect(verdictText({ ...row('after', 50), figures: [] })).toBe('not measured')
  })

  test('compares a build with the one before', () => {
    expect(comparison([row('before', 350), row('after', 15)]).rows).toEqual([
      ['`flood`: 60 a second', ...Array.from({ length: 3 }, () => '35, now 1.5 (bare 1.0)'), 'met'],
    ])
    expect(comparison([row('after', 15)]).rows[0]![1]).toBe('1.5 (bare 1.0)')
  })
})

describe('the noise', () => {
  test('is sent as many at a time, or a second, as was said, until it is ended, and its answers are counted', async () => {
    const noise = await startNoise()
    try {
      const urls = [`${noise.url}/accept?{docId}`, `${noise.url}/fail`]
      await noise.run({ method: 'PUT', urls, body: 'document', parallel: 3, count: 10 })
      expect(await noise.facts()).toMatchObject({ answers: { 200: 5, 503: 5 }, received: { accept: 5, fail: 5 } })
      await noise.forget()
      await noise.begin({ method: 'GET', urls: [`${noise.url}/hang`], parallel: 7 }, { method: 'GET', urls, perSecond: 50 })
      await until('requests hang while others are answered', async () => {
        const { open, answers } = await noise.facts()
        return open['hang'] === 7 && (answers['200'] ?? 0) > 10
      })
      await noise.end()
      const { answers } = await noise.facts()
      expect((await noise.facts()).answers).toEqual(answers)
    } finally {
      await noise.stop()
    }
  })

  test('has a target that drips, and never ends its answer', async () => {
    const noise = await startNoise()
    const leave = new AbortController()
    try {
      const response = await fetch(`${noise.url}/drip`, { signal: leave.signal })
      const reader = response.body!.getReader()
      const parts = [await reader.read(), await reader.read()]
      expect(parts.map(({ value, done }) => [value?.length, done])).toEqual([
        [1, false],
        [1, false],
      ])
      expect((await noise.facts()).open['drip']).toBe(1)
    } finally {
      leave.abort()
      await noise.stop()
    }
  })

  test('has bombs: a PDF of some KiB that inflates to a thousand times as much in two steps, and XML of millions of entities', () => {
    const bodyOf = createBodies()
    const pdf = bodyOf('pdf bomb')!
    expect(pdf.length).toBeLessThan(20 * 1024)
    const text = pdf.toString('latin1')
    const outer = inflateSync(Buffer.from(text.slice(text.indexOf('stream\n') + 7, text.lastIndexOf('\nendstream')), 'latin1'))
    expect(outer.length).toBeGreaterThan(4_000_000)
    expect(bodyOf('pdf bomb')).toBe(pdf)
    expect(bodyOf('xml bomb')!.length).toBeGreaterThan(14_000_000)
  })

  test('is described in the order in which it is made, and by names that can be chosen', () => {
    expect(noises.map(({ name }) => name)).toEqual([...new Set(noises.map(({ name }) => name))])
    for (const { name, text } of noises) {
      expect(name).toMatch(/^[a-z-]+$/)
      expect(text).not.toMatch(/\.$/)
    }
  })
})

test('docs/reliability.md has a row for each noise, with the figures of docs/measurements/bench/isolation.md', async () => {
  const read = (path: string) => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')
  const [page, table] = [await read('reliability.md'), await read('measurements/bench/isolation.md')]
  const lines = page.split('\n')
  for (const { name, text } of noises) {
    const line = lines.find((each) => each.startsWith(`| \`${name}\``) && each.includes(`: ${text} |`))
    expect({ name, line }).toEqual({ name, line: expect.any(String) })
    if (line!.endsWith('| not measured |')) continue
    const measured = table.split('\n').find((each) => each.startsWith(`| ${name}, after |`))!
    const ratios = [...measured.matchAll(/ms: ([\d.]+ \(bare [\d.]+\))/g)].map(([, ratio]) => ratio)
    expect(ratios.length).toBeGreaterThan(0)
    for (const ratio of ratios) expect(line).toContain(ratio)
  }
})
