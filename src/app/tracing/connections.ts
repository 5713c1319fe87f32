import type { Outbound, OutboundGuard } from '../../security/outbound.ts'
import { errorTypeOf, type Tracing } from './tracing.ts'

/** Returns the same guard with a span for each connection that a connector opens itself, for SFTP and SMTP, as long as it is open. */
export const traceConnections = (tracing: Tracing, guard: OutboundGuard): OutboundGuard => {
  const connect =
    (outbound: Outbound): Outbound['connect'] =>
    async (options) => {
      if (tracing.traceparent() === undefined) return outbound.connect(options)
      const attributes = { 'network.transport': 'tcp', 'server.address': options.host, 'server.port': options.port }
      const span = tracing.start('connection', { kind: 'client', attributes })
      try {
        const socket = await outbound.connect(options)
        return socket.once('close', (hadError) => {
          span.set({ 'relay.sent_bytes': socket.bytesWritten, 'relay.received_bytes': socket.bytesRead })
          if (hadError) span.fail('connection_failed')
          span.end()
        })
      } catch (thrown) {
        span.fail(errorTypeOf(thrown))
        span.end()
        throw thrown
      }
    }
  return {
    ...guard,
    connect: connect(guard),
    unencryptedPrivate: { ...guard.unencryptedPrivate, connect: connect(guard.unencryptedPrivate) },
  }
}
