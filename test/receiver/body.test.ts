import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createCaptureMemory, createStreamingBody } from '../../src/capture/body.ts'
import { readBody } from '../../src/receiver/body.ts'
import type { ReceiverRequest } from '../../src/receiver/exchange.ts'
import { receiverLimits } from '../../src/receiver/limits.ts'

const KiB = 1024

const read = (given: Partial<ReceiverRequest>) => {
  const recordedBody = createStreamingBody(KiB, createCaptureMemory(KiB).of('127.0.0.1'))
  const request = { headers: { 'content-length': '5' }, replayOf: null, recordedBody, ...given } as ReceiverRequest
  return buffer(readBody(request, { ...receiverLimits, RELAY_DOCUMENT_MAX_BYTES: KiB }))
}
const body = () => Readable.from([Buffer.from('abc')], { objectMode: false })

test('a body with fewer bytes than it announces is not read to its end, so that it is not acknowledged', async () => {
  await expect(read({ body: body() })).rejects.toThrow('3 of the 5 bytes of the body have arrived')
})

test('a replay may repeat a shorter body, because that of the original request was redacted', async () => {
  expect(await read({ body: body(), replayOf: '01J00000000000000000000000' })).toEqual(Buffer.from('abc'))
})
