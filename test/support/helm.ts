import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const chart = fileURLToPath(new URL('../../deploy/helm/document-relay', import.meta.url))

/** Runs helm on the chart. @returns its output @throws with its errors */
export const helmOnChart = async (helm: string, command: string[], options: string[]): Promise<string> => {
  const { stdout } = await run(helm, [...command, chart, ...options], { maxBuffer: 16 * 1024 * 1024, timeout: 120_000 })
  return stdout
}

// A helm that is built from source takes 1.20 for the version of the cluster, which the chart refuses.
const cluster = ['--kube-version', '1.33.0']

/** Renders the chart as the release document-relay. @param options options of `helm template` */
export const renderChart = (helm: string, options: string[]): Promise<string> =>
  helmOnChart(helm, ['template', 'document-relay'], [...cluster, ...options])

/** Values of the chart that put an ingress before the API, and policies around every pod. */
export const networkValues = {
  ingress: { enabled: true, className: 'nginx', hosts: ['relay.example'], tls: [{ hosts: ['relay.example'], secretName: 'tls' }] },
  networkPolicy: {
    enabled: true,
    apiFrom: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }],
    metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }],
  },
}
