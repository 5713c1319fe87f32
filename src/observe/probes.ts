import type { Context, Middleware } from 'koa'
import { collectDefaultMetrics, Gauge, Registry, type Metric } from 'prom-client'
import { UserError } from '../base/errors.ts'
import { reasonOf } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { version } from '../base/version.ts'
import { createPools } from './metrics.ts'

export interface Dependency {
  name: string
  /** Rejects if the dependency is unavailable. */
  check(): Promise<unknown>
}

interface Health {
  ok: boolean
  last_success_at: string | null
  error?: string
}

// A dependency that has not answered after this time is unavailable. A load balancer, or Kubernetes, gives a probe a few seconds.
const checkMaxMs = 4_000

/** @throws `UserError` if there is no answer in time */
const inTime = async (check: () => Promise<unknown>, maxMs: number): Promise<void> => {
  const { promise: tooLate, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new UserError(`no answer within ${maxMs} ms`)), maxMs)
  try {
    await Promise.race([check(), tooLate])
  } finally {
    clearTimeout(timer)
  }
}

/** Creates the probes and the metrics of one process, and serves `/healthz`, `/readyz` and `/metrics` to load balancers, operators and Prometheus. */
export const createProbes = (log: Pick<Log, 'info' | 'warn'>, poolStuckMs?: number, maxMs = checkMaxMs) => {
  const dependencies = new Map<string, Dependency>()
  const lastSuccess = new Map<string, Date>()
  const failing = new Set<string>()
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const build = new Gauge({
    name: 'relay_build_info',
    help: 'Version of the relay; the value is 1',
    labelNames: ['version'],
    registers: [],
  })
  build.set({ version }, 1)
  registry.registerMetric(build)
  const pools = createPools(poolStuckMs)
  registry.registerMetric(pools.metric)
  const texts: (() => Promise<string>)[] = []

  /**
   * Logs that a dependency has become unavailable. `/readyz` answers without a key, so its answer has only messages of the relay itself:
   * those of a driver contain addresses.
   */
  const report = (name: string, thrown: unknown): string => {
    if (!failing.has(name)) log.warn({ dependency: name, reason: reasonOf(thrown) }, 'not ready: a dependency is unavailable')
    failing.add(name)
    return thrown instanceof UserError ? thrown.message : 'unavailable; the log says why'
  }

  const checkHealth = async ({ name, check }: Dependency): Promise<[string, Health]> => {
    try {
      await inTime(check, maxMs)
      lastSuccess.set(name, new Date())
      if (failing.delete(name)) log.info({ dependency: name }, 'a dependency is available again')
      return [name, { ok: true, last_success_at: lastSuccess.get(name)!.toISOString() }]
    } catch (thrown) {
      return [name, { ok: false, last_success_at: lastSuccess.get(name)?.toISOString() ?? null, error: report(name, thrown) }]
    }
  }

  let isStopping = false
  const handlers: Record<string, (context: Context) => Promise<void>> = {
    '/healthz': async (context) => {
      // A process whose event loop is stuck does not answer at all.
      const status = isStopping ? 'stopping' : pools.areStuck() ? 'stuck' : 'alive'
      if (status === 'stuck') log.warn('no connection of the database pool is given back; the process has to be started again')
      context.status = status === 'alive' ? 200 : 503
      context.body = { status }
    },
    '/readyz': async (context) => {
      const health = Object.fromEntries(await Promise.all([...dependencies.values()].map(checkHealth)))
      const ready = !isStopping && Object.values(health).every(({ ok }) => ok)
      context.status = ready ? 200 : 503
      context.body = { status: ready ? 'ready' : 'not ready', version, dependencies: health }
    },
    '/metrics': async (context) => {
      context.type = registry.contentType
      context.body = (await Promise.all([registry.metrics(), ...texts.map((read) => read())])).join('')
    },
  }

  const middleware: Middleware = async (context, next) => {
    const handler = Object.hasOwn(handlers, context.path) ? handlers[context.path] : undefined
    if (!handler || !['GET', 'HEAD'].includes(context.method)) return next()
    context.set('x-relay-request-id', newId())
    return handler(context)
  }

  return {
    /** Adds what a part of the process needs and measures. A dependency replaces an earlier one of the same name. */
    add: (added: Dependency[], metrics: Metric[]): void => {
      for (const dependency of added) dependencies.set(dependency.name, dependency)
      for (const metric of metrics) registry.registerMetric(metric)
    },
    /** Adds a pool, whose connections are then counted. `/healthz` answers 503 if all of them are lent for good. */
    watchPool: pools.watch,
    /** Adds metrics that another library has written in the text format of Prometheus. */
    addText: (read: () => Promise<string>) => void texts.push(read),
    /** Lets `/healthz` and `/readyz` answer 503 from now on, because the process is about to end. */
    stop: (): void => {
      isStopping = true
    },
    middleware,
  }
}

export type Probes = ReturnType<typeof createProbes>
