import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { html } from '../html.ts'
import { language, locale, theme } from '../preferences.ts'

export interface PlotSeries {
  label: string
  /** One for each period; null is a gap. */
  values: (number | null)[]
  /** Name of a colour token of style.css. */
  colour: 'accent' | 'good' | 'bad' | 'warn'
  shape: 'bars' | 'steps'
}

export interface PlotProps {
  /** Says what the picture shows. */
  label: string
  /** Starts of the periods, in milliseconds since 1970. */
  starts: number[]
  series: PlotSeries[]
  interval: 'hour' | 'day'
  period: string
  /** Scale for durations in milliseconds. */
  scale?: 'logarithmic'
  format: (value: number) => string
}

const height = 200
const lengthSeconds = { hour: 3_600, day: 86_400 }
const wholeSteps = [1, 2, 5].flatMap((digit) => Array.from({ length: 9 }, (_, power) => digit * 10 ** power)).toSorted((a, b) => a - b)

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
// Durations that people use, in milliseconds.
const durations = [1, 10, 100, secondMs, 10 * secondMs, minuteMs, 10 * minuteMs, hourMs, 10 * hourMs, 4 * dayMs, 40 * dayMs, 400 * dayMs]

/** Returns the ends of a scale of durations. */
const durationRange = (min: number, max: number): [number, number] => {
  const from = durations.findLastIndex((duration) => duration <= min)
  const to = durations.findIndex((duration) => duration > max)
  return [durations[Math.max(0, from)]!, durations.at(to)!]
}

// Of a label with 11 pixels, whose digits are narrower.
const characterWidth = 6.5
const labelMargin = 16

/** Returns the width of an axis whose labels are not cut off. */
const widthOf = (labels: readonly string[] | null): number =>
  Math.max(40, Math.ceil(Math.max(0, ...(labels ?? []).map(({ length }) => length)) * characterWidth) + labelMargin)

// The enum of uPlot has no value in the browser.
const logarithmic: object = { distr: 3 }

let styles: Promise<void> | undefined
/** Loads the style sheet of uPlot, once. */
const loadStyles = (): Promise<void> => {
  styles ??= new Promise((resolve) => {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.href = new URL('uplot.css', import.meta.resolve('uplot')).href
    link.addEventListener('load', () => resolve())
    link.addEventListener('error', () => resolve())
    document.head.append(link)
  })
  return styles
}

/** Returns a function that resolves a token of style.css to a colour that a canvas understands. */
const coloursOf = (element: HTMLElement) => {
  const probe = document.createElement('span')
  element.append(probe)
  const resolve = (token: string, opacity = 100) => {
    probe.style.color = `color-mix(in srgb, var(--${token}) ${opacity}%, transparent)`
    return getComputedStyle(probe).color
  }
  return { resolve, done: () => probe.remove() }
}

const optionsOf = (element: HTMLElement, { starts, series, interval, period, scale, format }: PlotProps): uPlot.Options => {
  const { resolve, done } = coloursOf(element)
  const length = lengthSeconds[interval]
  const isLong = starts.length > 48
  const timeZone = interval === 'day' ? { timeZone: 'UTC' } : {}
  const ofTick = new Intl.DateTimeFormat(locale(), {
    ...timeZone,
    ...(isLong || interval === 'day' ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' }),
  })
  const ofCursor = new Intl.DateTimeFormat(locale(), {
    ...timeZone,
    dateStyle: 'medium',
    ...(interval === 'hour' && { timeStyle: 'short' as const }),
  })
  const axis = {
    stroke: resolve('quiet'),
    grid: { stroke: resolve('border'), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  }
  const options: uPlot.Options = {
    width: Math.max(1, element.clientWidth),
    height,
    ...(interval === 'day' && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC') }),
    scales: {
      x: { time: true, range: (_, min, max) => [min, max] },
      y: {
        ...(scale === 'logarithmic' && logarithmic),
        range: (_, min, max) => (scale === 'logarithmic' ? durationRange(min || 1, max || 10) : [0, Math.max(1, (max || 0) * 1.1)]),
      },
    },
    axes: [
      {
        ...axis,
        space: 70,
        size: 28,
        values: (_, splits) => splits.map((seconds) => ofTick.format(seconds * 1_000)),
        ...((isLong || interval === 'day') && { incrs: [1, 2, 5, 7, 14].map((days) => days * 86_400) }),
      },
      {
        ...axis,
        size: (_, labels) => widthOf(labels),
        ...(scale === 'logarithmic'
          ? {
              splits: (_: uPlot, __: number, min: number, max: number) => durations.filter((each) => each >= min && each <= max),
              filter: (_: uPlot, splits: number[]) => splits,
            }
          : { incrs: wholeSteps }),
        values: (_, splits) => splits.map((value) => (value === null ? '' : format(value))),
      },
    ],
    series: [
      { label: period, value: (_, seconds: number | null) => (seconds === null ? '–' : ofCursor.format(seconds * 1_000)) },
      ...series.map(({ label, colour, shape }): uPlot.Series => ({
        label,
        stroke: resolve(colour),
        width: shape === 'bars' ? 1 : 2,
        ...(shape === 'bars' && { fill: resolve(colour, 30) }),
        paths: shape === 'bars' ? uPlot.paths.bars!({ align: 1, size: [0.8, 40] }) : uPlot.paths.stepped!({ align: 1 }),
        points: { show: false },
        value: (_, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
    cursor: {
      drag: { x: false, y: false },
      points: { show: false },
      y: false,
      // The period that the cursor is in, not the one whose start is the nearest.
      dataIdx: (_, __, ___, seconds) => Math.max(0, Math.min(starts.length - 1, Math.floor((seconds - starts[0]! / 1_000) / length))),
    },
    legend: { live: true },
  }
  done()
  return options
}

const dark = matchMedia('(prefers-color-scheme: dark)')

/** Returns the columns of a plot. They end with the last period, and a bar without height has no line. */
const dataOf = ({ starts, series, interval }: PlotProps): uPlot.AlignedData => [
  [...starts.map((start) => start / 1_000), starts.at(-1)! / 1_000 + lengthSeconds[interval]],
  ...series.map(({ values, shape }) =>
    shape === 'bars' ? [...values.map((value) => value || null), null] : [...values, values.at(-1) ?? null],
  ),
]

/** A plot over time. A screen reader says its label; the numbers stand in a table. */
export const Plot = (props: PlotProps) => {
  const ref = useRef<HTMLDivElement>(null)
  const [isDark, setDark] = useState(dark.matches)
  useEffect(() => {
    const follow = () => setDark(dark.matches)
    dark.addEventListener('change', follow)
    return () => dark.removeEventListener('change', follow)
  }, [])
  const { starts, series, interval } = props
  useEffect(() => {
    const element = ref.current!
    let plot: uPlot | undefined
    let isGone = false
    const observer = new ResizeObserver(() => plot?.setSize({ width: Math.max(1, element.clientWidth), height }))
    void loadStyles().then(() => {
      if (isGone) return
      plot = new uPlot(optionsOf(element, props), dataOf(props), element)
      observer.observe(element)
    })
    return () => {
      isGone = true
      observer.disconnect()
      plot?.destroy()
    }
    // The same numbers leave the plot, and the cursor in it, alone.
  }, [JSON.stringify([starts, series, interval]), theme.value, isDark, language.value])
  return html`<div class="plot" role="img" aria-label=${props.label} ref=${ref}></div>`
}
