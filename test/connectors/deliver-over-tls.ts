// A process of its own, since Node reads NODE_EXTRA_CA_CERTS once, at its start.
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, payloadOf } from './payloads.ts'
import { loadRigs } from './rig.ts'

/** A delivery to a server that speaks TLS. */
export interface TlsJob {
  /** Name of a TLS case of a rig. */
  name: string
  port: number
  caCertificate?: string
  proxyUrl?: string
}

/** How a delivery has ended: its error, or none. */
export interface TlsReport {
  code?: string
  message?: string
}

const cases = (await loadRigs()).flatMap(({ tlsCases }) => tlsCases)

const deliver = async ({ name, port, caCertificate, proxyUrl }: TlsJob): Promise<TlsReport> => {
  const { connector, config, credentials } = cases.find((tlsCase) => tlsCase.name === name)!.destination(port)
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'], proxyUrl })
  const target = {
    config: connector.config.parse({ ...config, ...(caCertificate !== undefined && { ca_certificate: caCertificate }) }),
    credentials: connector.credentials.parse(credentials),
  }
  try {
    await connector.deliver(payloadOf(Buffer.from('x')), target, contextOf(outbound))
    return {}
  } catch (thrown) {
    const { code, message } = thrown as { code: string; message: string }
    return { code, message }
  } finally {
    await outbound.close()
  }
}

process.on('message', (job: TlsJob) => void deliver(job).then((report) => process.send!(report)))
process.send!('ready')
