import { Registry } from 'prom-client'
import type { Scene } from '../support/scene.ts'

/** Reads a value of the metrics of the receiver. @param line name and labels, as Prometheus sees them */
export const readMetric = async ({ api }: { api: Pick<Scene['api'], 'receiverMetrics'> }, line: string): Promise<number> => {
  const registry = new Registry()
  for (const metric of api.receiverMetrics) registry.registerMetric(metric)
  const text = await registry.metrics()
  return Number(
    text
      .split('\n')
      .find((each) => each.startsWith(`${line} `))
      ?.slice(line.length + 1) ?? 0,
  )
}
