// Lays out bars of delivered and failed attempts. Pure, so that it can be tested without a browser.

export interface Period {
  start: string
  delivered: number
  failed: number
}

/** All values are percentages of the picture. */
export interface Bar {
  left: number
  width: number
  /** Height of the part for what was delivered, which stands on the ground. */
  delivered: number
  /** Height of the part for what has failed, which stands on the other. */
  failed: number
}

// A few failures among many deliveries stay visible.
const minHeight = 4
const gap = 0.2

/** Returns the smallest of 1, 2, 5, 10, 20, 50 ... that is not below a number. */
export const roundUp = (value: number): number => {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return [1, 2, 5, 10].map((factor) => factor * unit).find((each) => each >= value)!
}

export const totalsOf = (series: readonly Period[]) =>
  series.reduce((sum, { delivered, failed }) => ({ delivered: sum.delivered + delivered, failed: sum.failed + failed }), {
    delivered: 0,
    failed: 0,
  })

/** Returns the largest number of attempts in a period, or 1 if there are none. */
export const largestOf = (series: readonly Period[]): number => Math.max(1, ...series.map(({ delivered, failed }) => delivered + failed))

/** Returns a bar for each period. @param max the number that the full height stands for */
export const layOutBars = (series: readonly Period[], max: number): Bar[] => {
  const pitch = 100 / Math.max(1, series.length)
  const heightOf = (count: number) => (count === 0 ? 0 : Math.max(minHeight, (count / max) * 100))
  return series.map(({ delivered, failed }, index) => {
    const failedHeight = heightOf(failed)
    return {
      left: (index + gap / 2) * pitch,
      width: (1 - gap) * pitch,
      delivered: Math.min(heightOf(delivered), 100 - failedHeight),
      failed: failedHeight,
    }
  })
}
