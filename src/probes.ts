import type { Middleware } from 'koa'
import { collectDefaultMetrics, Gauge, Registry, type Metric } from 'prom-client'
import { messageOf } from './errors.ts'

export interface Dependency {
  name: string
  /** Throws where the dependency is away. Bounded in time by itself. */
  check(): Promise<unknown>
}

interface Health {
  ok: boolean
  last_success_at: string | null
  error?: string
}

/** `/healthz`, `/readyz` and `/metrics`: what load balancers, operators and Prometheus ask for. */
export const createProbes = (dependencies: Dependency[], countOutbox: () => Promise<number>, metrics: Metric[]): Middleware => {
  const lastSuccess = new Map<string, Date>()
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const metric of metrics) registry.registerMetric(metric)
  registry.registerMetric(
    new Gauge({
      name: 'relay_outbox_messages',
      help: 'Messages that Temporal has not been sent yet',
      registers: [],
      async collect() {
        this.set(await countOutbox().catch(() => Number.NaN))
      },
    }),
  )

  const examine = async ({ name, check }: Dependency): Promise<[string, Health]> => {
    try {
      await check()
      lastSuccess.set(name, new Date())
      return [name, { ok: true, last_success_at: lastSuccess.get(name)!.toISOString() }]
    } catch (thrown) {
      return [name, { ok: false, last_success_at: lastSuccess.get(name)?.toISOString() ?? null, error: messageOf(thrown) }]
    }
  }

  return async (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next()
    switch (ctx.path) {
      case '/healthz':
        ctx.body = { status: 'alive' }
        return undefined
      case '/readyz': {
        const health = Object.fromEntries(await Promise.all(dependencies.map(examine)))
        const ready = Object.values(health).every(({ ok }) => ok)
        ctx.status = ready ? 200 : 503
        ctx.body = { status: ready ? 'ready' : 'not ready', dependencies: health }
        return undefined
      }
      case '/metrics':
        ctx.type = registry.contentType
        ctx.body = await registry.metrics()
        return undefined
      default:
        return next()
    }
  }
}
