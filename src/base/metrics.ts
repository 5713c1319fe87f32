import { Counter, Gauge, type LabelValues } from 'prom-client'

/** Creates a gauge. @param read returns its value when it is exported. If that fails, the gauge is NaN */
export const gaugeOf = (name: string, help: string, read: () => number | Promise<number>): Gauge =>
  new Gauge({
    name,
    help,
    registers: [],
    async collect() {
      try {
        this.set(await read())
      } catch {
        this.set(Number.NaN)
      }
    },
  })

/**
 * Creates a counter.
 * @param known labels that begin at 0: the first increase counts only if Prometheus has seen the 0 before it
 */
export const counterOf = <Label extends string = never>(
  name: string,
  help: string,
  labelNames: readonly Label[] = [],
  known: readonly LabelValues<Label>[] = [],
): Counter<Label> => {
  const counter = new Counter({ name, help, labelNames, registers: [] })
  for (const labels of known) counter.inc(labels, 0)
  return counter
}
