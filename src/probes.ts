import type { Context, Middleware } from 'koa'
import { collectDefaultMetrics, Gauge, Registry, type Metric } from 'prom-client'
import { messageOf } from './errors.ts'
import { newId } from './ids.ts'

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

  const answers: Record<string, (context: Context) => Promise<void>> = {
    '/healthz': async (context) => {
      context.body = { status: 'alive' }
    },
    '/readyz': async (context) => {
      const health = Object.fromEntries(await Promise.all(dependencies.map(examine)))
      const ready = Object.values(health).every(({ ok }) => ok)
      context.status = ready ? 200 : 503
      context.body = { status: ready ? 'ready' : 'not ready', dependencies: health }
    },
    '/metrics': async (context) => {
      context.type = registry.contentType
      context.body = await registry.metrics()
    },
  }

  return async (context, next) => {
    const answer = Object.hasOwn(answers, context.path) ? answers[context.path] : undefined
    if (!answer || !['GET', 'HEAD'].includes(context.method)) return next()
    context.set('x-relay-request-id', newId())
    return answer(context)
  }
}
