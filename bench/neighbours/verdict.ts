import { quantile } from '../support/statistics.ts'
import { probes, type Probe, type Sample } from './quiet.ts'

/** A quiet workspace's probe beside a noise, and alone around it. */
export interface Figure {
  probe: Probe
  aloneP50Ms: number
  aloneP95Ms: number
  besideP50Ms: number
  besideP95Ms: number
  /** 95th percentile beside the noise, to that alone. */
  ratio: number
  /** The same of the bare program in the same place. */
  bareRatio: number
  bareBesideP95Ms: number
  isMet: boolean
}

const goalRatio = 2
// A delivery has more steps than the bare workflow, each of which waits beside a noise.
const bareArrivalRatio = 1.5

const p95 = (times: number[]) => quantile(times, 0.95)
const p50 = (times: number[]) => quantile(times, 0.5)

/**
 * Compares what was measured beside a noise with what was measured alone around it.
 * @param alone the measurements before and after the noise, which count together
 */
export const figuresOf = (alone: Sample[], beside: Sample): Figure[] =>
  probes
    .filter((probe) => beside.relay[probe].length > 0)
    .map((probe) => {
      const quiet = alone.flatMap(({ relay }) => relay[probe])
      const bareQuiet = alone.flatMap(({ bare }) => bare[probe])
      const [noisy, bareNoisy] = [beside.relay[probe], beside.bare[probe]]
      const ratio = p95(noisy) / p95(quiet)
      const bareRatio = p95(bareNoisy) / p95(bareQuiet)
      const isAtFloor = ratio <= bareRatio || (probe === 'arrival' && p95(noisy) <= bareArrivalRatio * p95(bareNoisy))
      return {
        probe,
        aloneP50Ms: p50(quiet),
        aloneP95Ms: p95(quiet),
        besideP50Ms: p50(noisy),
        besideP95Ms: p95(noisy),
        ratio,
        bareRatio,
        bareBesideP95Ms: p95(bareNoisy),
        isMet: ratio <= goalRatio || isAtFloor,
      }
    })

/** What a noise did in one build. */
export interface NoiseRow {
  noise: string
  text: string
  /** `before` is the checkout that this one is compared with. */
  build: 'before' | 'after'
  figures: Figure[]
  refused: number
  /** How loud it was, or why the row broke off. */
  facts: string
}

const whole = (ms: number) => Math.round(ms).toLocaleString('en')
const times = (ratio: number) => (ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(1))

/** Returns a figure as text: milliseconds without and with the noise, and the ratio with that of the bare program. */
export const figureText = ({ aloneP50Ms, aloneP95Ms, besideP50Ms, besideP95Ms, ratio, bareRatio }: Figure): string =>
  `${whole(aloneP50Ms)} / ${whole(aloneP95Ms)} to ${whole(besideP50Ms)} / ${whole(besideP95Ms)} ms: ${times(ratio)} (bare ${times(bareRatio)})`

const figureIn = ({ figures }: NoiseRow, probe: Probe) => figures.find((figure) => figure.probe === probe)

/** Says which goals a row misses. */
export const verdictText = (row: NoiseRow): string => {
  if (row.figures.length === 0) return 'not measured'
  const missed = row.figures.filter(({ isMet }) => !isMet).map(({ probe }) => probe)
  return missed.length === 0 ? 'met' : `missed: ${missed.join(', ')}`
}

/** Returns a row as the benchmarks' tables have it. */
export const tableRow = (row: NoiseRow) => {
  const cell = (probe: Probe) => {
    const figure = figureIn(row, probe)
    return figure ? figureText(figure) : '-'
  }
  return {
    case: `${row.noise}, ${row.build}`,
    create: cell('create'),
    get: cell('get'),
    answer_to_arrival: cell('arrival'),
    not_answered: row.refused,
    noise: row.facts,
    goal: verdictText(row),
  }
}

const header = ['Noise', 'create', 'get', 'answer to arrival', 'Goal']

/** Returns the rows of the table for readers: the ratio of each probe before and now, and whether the goals are met now. */
export const comparison = (rows: NoiseRow[]): { header: string[]; rows: string[][] } => ({
  header,
  rows: rows
    .filter(({ build }) => build === 'after')
    .map((after) => {
      const before = rows.find(({ build, noise }) => build === 'before' && noise === after.noise)
      const cell = (probe: Probe) => {
        const now = figureIn(after, probe)
        if (!now) return '-'
        const then = before && figureIn(before, probe)
        return `${then ? `${times(then.ratio)}, now ` : ''}${times(now.ratio)} (bare ${times(now.bareRatio)})`
      }
      return [`\`${after.noise}\`: ${after.text}`, ...probes.map(cell), verdictText(after)]
    }),
})
