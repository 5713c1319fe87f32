import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { openSocket } from '../support/source-system.ts'

// What the security review of November 2026 tried without success, and no other test covers.

const scene = share(await startScene())
const { source, path } = await scene.workspace()

const injected = '%0D%0AX-Injected:%201%0D%0A%0D%0Abody'

test.each([
  ['a command', `get${injected}&pVersion=0045&contRep=Z1&docId=D1`],
  ['contRep', `get&pVersion=0045&contRep=Z1${injected}&docId=D1`],
  ['docId', `create&pVersion=0045&contRep=Z1&docId=D1${injected}&compId=data`],
  ['compId', `create&pVersion=0045&contRep=Z1&docId=D1&compId=data${injected}`],
  ['authId', `putCert&pVersion=0046&contRep=Z1&authId=CN%3DTST${injected}`],
  ['a name of a parameter', `get&pVersion=0045&contRep=Z1&docId=D1&a${injected}=1`],
])('a line break in %s ends no header of the answer and no line of the log', async (_, query) => {
  const before = scene.api.log.length
  const { send, untilClosed } = await openSocket(scene.api.port)
  await send(`PUT ${path}?${query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx`)
  const [head = ''] = (await untilClosed()).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 4\d\d /)
  expect(head).not.toMatch(/^x-injected/im)
  for (const line of scene.api.log.slice(before)) {
    expect(line).toMatch(/^[^\n]*\n$/)
    expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) })
  }
})

test.each([
  ['a content type with a bare carriage return', 'text/plain\rX-Injected: 1'],
  ['a folded content type', 'text/plain\r\n X-Injected: 1'],
])('a part with %s gives the answer no header', async (name, contentType) => {
  const docId = `PART${name.length}`
  const part = { headers: { 'X-compId': 'data', 'Content-Type': contentType }, body: 'hello' }
  const created = await source.createParts(docId, [part])
  // Refused, or stored with a content type that is one line.
  const answer = await source.get(docId)
  expect([created.status, answer.status]).toEqual(created.status === 201 ? [201, 200] : [400, 404])
  expect(answer.headers).not.toHaveProperty('x-injected')
})

test('the body of a refused request is not taken for the next request', async () => {
  const smuggled = `PUT ${path}?create&pVersion=0045&contRep=Z1&docId=SMUGGLED&compId=data HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`
  const { send, untilClosed } = await openSocket(scene.api.port)
  await send(`PUT ${path}?nonsense HTTP/1.1\r\nHost: x\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`)
  await send(`GET ${path}?info&pVersion=0045&contRep=Z1&docId=SMUGGLED HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  expect((await untilClosed()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 404'])
})
