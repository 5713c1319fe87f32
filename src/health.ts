// The health check of containers: `node dist/src/health.js [PATH]` asks the API or the worker of this container, by default whether it is
// alive, with `/readyz` whether it is ready. Exits with 1 if not.
//
// Not a verb of the command line, and no import: it runs every 30 seconds, and loading the configuration takes ten times as long.

const path = process.argv[2] ?? '/healthz'
// An empty variable has its default, as in the configuration.
const host = process.env['RELAY_PROBES_HOST'] || '127.0.0.1'
const apiPort = process.env['RELAY_PROBES_PORT'] || '8082'
const workerPort = process.env['RELAY_WORKER_PORT'] || '8081'

const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host

/** Asks the process that listens on a port. @returns undefined if none does */
const ask = async (port: string): Promise<boolean | undefined> => {
  try {
    const response = await fetch(`http://${address}:${port}${path}`, { signal: AbortSignal.timeout(4_000) })
    console.log(`port ${port}: ${response.status} ${await response.text()}`)
    return response.ok
  } catch (thrown) {
    const { cause = thrown } = thrown as Error
    if ((cause as NodeJS.ErrnoException).code === 'ECONNREFUSED') return undefined
    console.log(`port ${port}: ${String(cause)}`)
    return false
  }
}

// Only one of the two ports is open, unless the container shares the network of its host.
const answers = (await Promise.all([ask(apiPort), ask(workerPort)])).filter((answer) => answer !== undefined)
if (answers.length === 0) console.log(`no process listens on port ${apiPort} or ${workerPort}`)
process.exitCode = answers.length > 0 && answers.every(Boolean) ? 0 : 1
