import { largestOf, layOutBars, roundUp, type Bar, type Period } from '../bars.ts'
import { html } from '../html.ts'
import { locale } from '../preferences.ts'

const percent = (value: number) => `${value.toFixed(3)}%`

const Bars = ({ bars }: { bars: Bar[] }) =>
  bars.map(
    ({ left, width, delivered, failed }, index) =>
      html`<g key=${index}>
        ${
          delivered > 0 &&
          html`<rect class="good" x=${percent(left)} width=${percent(width)} y=${percent(100 - delivered)} height=${percent(delivered)} />`
        }
        ${
          failed > 0 &&
          html`<rect
            class="bad"
            x=${percent(left)}
            width=${percent(width)}
            y=${percent(100 - delivered - failed)}
            height=${percent(failed)}
          />`
        }
      </g>`,
  )

/** Bars of a series in a line of a table. @param label says the same in words */
export const Sparkline = ({ series, label }: { series: Period[]; label: string }) =>
  html`<svg class="bars sparkline" role="img" aria-label=${label}>
    <${Bars} bars=${layOutBars(series, largestOf(series))} />
  </svg>`

const dayTicks = 6
const hoursOfTwoDays = 48
// A label that begins further right would not fit on a phone.
const tickMaxLeft = 85

/** Returns true for the periods that have a label: every sixth hour of a day, the days of a week, or some of the days of a month. */
const hasTick = (start: string, index: number, { length }: Period[], interval: 'hour' | 'day'): boolean => {
  if (interval === 'day') return index % Math.ceil(length / dayTicks) === 0
  return new Date(start).getHours() % (length > hoursOfTwoDays ? 24 : 6) === 0
}

/** The same bars, larger and with scales. The table beside the plot contains the numbers. */
export const BarPlot = ({ series, interval, label }: { series: Period[]; interval: 'hour' | 'day'; label: string }) => {
  const max = roundUp(largestOf(series))
  const bars = layOutBars(series, max)
  const format = new Intl.DateTimeFormat(
    locale(),
    interval === 'day' || series.length > hoursOfTwoDays ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
  )
  const ticks = series
    .map(({ start }, index) => ({ start, index, left: bars[index]!.left }))
    .filter(({ start, index, left }) => left <= tickMaxLeft && hasTick(start, index, series, interval))
  const number = (value: number) => value.toLocaleString(locale())
  return html`<div class="bar-plot">
    <div class="scale small" aria-hidden="true">
      <span>${number(max)}</span><span>${max % 2 === 0 && number(max / 2)}</span><span>0</span>
    </div>
    <svg class="bars" role="img" aria-label=${label}>
      ${[0, 50, 100].map((at) => html`<line key=${at} x1="0" x2="100%" y1=${percent(at)} y2=${percent(at)} />`)}
      <${Bars} bars=${bars} />
    </svg>
    <svg class="ticks" aria-hidden="true">
      ${ticks.map(({ start, left }) => html`<text key=${start} x=${percent(left)} y="13">${format.format(new Date(start))}</text>`)}
    </svg>
  </div>`
}
