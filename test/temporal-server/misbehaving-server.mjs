// Stands in for temporal-server: answers the calls with which the relay watches one, by the file `behaviour` beside its configuration.
import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import { dirname, join } from 'node:path'

const configFile = process.argv[process.argv.indexOf('--config-file') + 1]
const { services } = JSON.parse(readFileSync(configFile, 'utf8'))
const behaviour = () => readFileSync(join(dirname(configFile), 'behaviour'), 'utf8')

if (behaviour() === 'exits') {
  console.log(JSON.stringify({ level: 'fatal', msg: 'unable to start', error: 'no database' }))
  process.exit(1)
}
console.log(JSON.stringify({ level: 'error', msg: 'service failures', error: 'Frontend is not healthy yet' }))
console.log(JSON.stringify({ level: 'warn', msg: 'started', service: 'frontend' }))

const server = http2.createServer()
server.on('stream', (stream, headers) => {
  // A frozen process takes connections and answers nothing.
  if (behaviour() === 'silent') return
  const isCheck = headers[':path'].endsWith('/Check')
  const status = isCheck && behaviour() === 'refuses' ? '8' : '0'
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }))
  // A message of gRPC: SERVING, or one without a field.
  stream.end(status === '0' ? Buffer.from(isCheck ? [0, 0, 0, 0, 2, 8, 1] : [0, 0, 0, 0, 0]) : undefined)
})
server.listen(services.frontend.rpc.grpcPort, '127.0.0.1')
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0))
