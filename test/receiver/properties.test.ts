import * as fc from 'fast-check'
import { isUtf8 } from 'node:buffer'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { parseQuery, readCommand, splitTarget } from '../../src/receiver/command.ts'
import { boundaryOf, readParts } from '../../src/receiver/multipart.ts'
import { Refusal } from '../../src/receiver/refusal.ts'
import { bytesOf, check, mutate, mutationsOf, withinASecond } from '../support/properties.ts'
import { multipartBody, openSocket, part } from '../support/source-system.ts'
import { bodyTokens, boundary, cuts, multipartBodies, split } from './multipart-bodies.ts'
import { startScene, type Scene, type SceneWorkspace } from './receiver.ts'

/** What the work gives, or the refusal it ends with. Any other error is a failure. */
const orRefusal = <T>(work: () => T | Promise<T>): Promise<T | Refusal> =>
  withinASecond(async () => {
    try {
      return await work()
    } catch (thrown) {
      if (thrown instanceof Refusal) return thrown
      throw thrown
    }
  })

const urlTokens = [
  '&',
  '=',
  '%',
  '+',
  '?',
  '%41',
  '%e4',
  '%C3%A4',
  '%0',
  '%00',
  'create',
  'Get',
  'contRep',
  'docId=D1',
  '&pVersion=0045',
  '\xe4',
]

describe('the URL of a request', () => {
  const hex = (byte: number) => byte.toString(16).padStart(2, '0')
  const encodings: ((byte: number) => string)[] = [
    (byte) => `%${hex(byte)}`,
    (byte) => `%${hex(byte).toUpperCase()}`,
    (byte) => (byte <= 0x20 || '&%#\x7f'.includes(String.fromCodePoint(byte)) ? `%${hex(byte)}` : String.fromCodePoint(byte)),
  ]
  const name = fc.string({ unit: fc.constantFrom('a', 'b', 'D', 'd', 'I', '-', '_', '.', '?', '+', '%', '%41', '\xe4'), maxLength: 6 })
  const bytes = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => Buffer.from(text)),
    bytesOf(['+', '=', '%', '%41', '&', '?', '/', '\xe4', '\xef\xbb\xbf', 'x'], 8),
  )
  const encoded = fc.array(fc.nat(encodings.length - 1), { minLength: 1, maxLength: 30 })

  it('gives back every parameter in order, however its bytes are encoded, and each as it stood there', async () => {
    const property = fc.asyncProperty(fc.array(fc.tuple(name, bytes, encoded), { maxLength: 8 }), async (parameters) => {
      const sent = parameters.map(([key, value, how]) => ({
        name: key,
        raw: [...value].map((byte, index) => encodings[how[index % how.length]!]!(byte)).join(''),
        value: value.toString(isUtf8(value) ? 'utf8' : 'latin1'),
      }))
      const target = `/receiver/a/b?create${sent.map(({ name: key, raw }) => `&${key}=${raw}`).join('')}`
      const { path, query } = splitTarget(target)
      const first = sent.filter(
        ({ name: key }, index) => sent.findIndex((other) => other.name.toLowerCase() === key.toLowerCase()) === index,
      )
      expect({ path, ...parseQuery(query) }).toEqual({ path: '/receiver/a/b', command: 'create', parameters: first })
    })
    await check(property, 2_000)
  })

  it('is read, or refused, in no time, whatever bytes it is', async () => {
    const property = fc.asyncProperty(
      bytesOf(urlTokens, 40),
      fc.constantFrom(1, 1, 1, 500),
      fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', ''),
      async (soup, times, method) => {
        const target = soup.toString('latin1').repeat(times)
        const outcome = await orRefusal(() => readCommand(method, parseQuery(splitTarget(`/x?create${target}`).query)))
        if (outcome instanceof Refusal) expect(outcome.code).toBe('invalid_parameter')
        else expect(outcome.rule.parameters.every(({ name: key, mandatory }) => !mandatory || outcome.get(key) !== '')).toBe(true)
        await orRefusal(() => readCommand(method, parseQuery(splitTarget(target).query)))
      },
    )
    await check(property, 1_000)
  })
})

describe('a multipart body', () => {
  const readAll = async (pieces: AsyncIterable<Buffer>, isSlow: boolean, limits = { boundary, maxParts: 20 }) => {
    const read: { compId: string | undefined; contentType: string | undefined; body: Buffer }[] = []
    for await (const { header: find, body } of readParts(pieces, limits)) {
      if (isSlow) await delay(1)
      read.push({ compId: find('x-compid'), contentType: find('content-type'), body: await buffer(body) })
    }
    return read
  }

  it('gives the same parts wherever it is cut, whatever they hold, and however slowly they are taken', async () => {
    const asSent = (value: string) => Buffer.from(value).toString('latin1')
    const property = fc.asyncProperty(multipartBodies, cuts, fc.boolean(), async (body, where, isSlow) => {
      const read = await withinASecond(() => readAll(split(body.bytes, where), isSlow))
      const wanted = body.parts.map(({ compId, contentType }) => ({ compId: asSent(compId), contentType: asSent(contentType) }))
      expect(read.map(({ compId, contentType }) => ({ compId, contentType }))).toEqual(wanted)
      // jest would compare 64 KiB byte by byte in JavaScript
      expect(read.every((one, index) => one.body.equals(body.parts[index]!.body))).toBe(true)
    })
    await check(property, 1_500)
  })

  it('gives parts or a refusal in no time where its bytes are damaged', async () => {
    const ends = new Set<string>()
    const property = fc.asyncProperty(
      multipartBodies,
      mutationsOf(bodyTokens),
      cuts,
      fc.boolean(),
      async (body, mutations, where, isSlow) => {
        const outcome = await orRefusal(() => readAll(split(mutate(body.bytes, mutations), where), isSlow))
        ends.add(outcome instanceof Refusal ? outcome.code : 'parts')
      },
    )
    await check(property, 1_500)
    expect([...ends].toSorted()).toEqual(['invalid_parameter', 'parts'])
  })

  it('is read or refused under any Content-Type', async () => {
    const tokens = ['multipart/form-data', ';', ' ', 'boundary=', 'Boundary="', '"', 'B-1', '\xe4'.repeat(150), '\t']
    const body = Buffer.from('--B-1\r\n\r\nx\r\n--B-1--')
    const everyThird = { anywhere: [], around: [], everyBytes: 3 }
    const ends = new Set<string>()
    const property = fc.asyncProperty(bytesOf(tokens, 8), async (bytes) => {
      const type = `multipart/form-data; boundary=${bytes.toString('latin1')}`
      for (const contentType of [type, bytes.toString('latin1')]) {
        const outcome = await orRefusal(() => readAll(split(body, everyThird), false, { boundary: boundaryOf(contentType), maxParts: 20 }))
        ends.add(outcome instanceof Refusal ? outcome.code : 'parts')
      }
    })
    await check(property, 500)
    expect([...ends].toSorted()).toEqual(['invalid_parameter', 'parts'])
  })
})

describe('a damaged create request', () => {
  let scene: Scene
  let workspace: SceneWorkspace

  beforeAll(async () => {
    scene = await startScene({ RELAY_DOCUMENT_MAX_PARTS: '5' })
    workspace = await scene.workspace()
  })
  afterAll(() => scene.stop())

  // more than the store holds in memory: bytes that are written before anybody knows how the request ends
  const large = 'x'.repeat(300_000)
  // where damage would hardly ever meet anything but them, they come in after it
  const placeholder = '%LARGE%'
  const whole = multipartBody(boundary, [
    part('data', `${large}\r\n--B-`, 'application/pdf; version=1.7'),
    part('descr', '0 5 X\n'),
    part('empty', ''),
  ])
  const content = Buffer.from(String(whole).replace(large, placeholder))
  const grow = (body: Buffer) => Buffer.from(body.toString('latin1').replace(placeholder, large), 'latin1')
  let count = 0

  /** Sends a create request, whole or damaged, and gives its status. */
  const send = async (
    method: 'PUT' | 'POST',
    damage: { query?: (query: Buffer) => Buffer; body?: (body: Buffer) => Buffer },
    cutAt = 0,
  ) => {
    count += 1
    const plain = Buffer.from(`create&pVersion=0045&contRep=Z1&docId=D${count}&docProt=rud${method === 'PUT' ? '&compId=d%C3%A4ta' : ''}`)
    const query = damage.query?.(plain) ?? plain
    const body = grow(damage.body?.(content) ?? content)
    const head = ` HTTP/1.1\r\nHost: cs\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`
    const connection = await openSocket(scene.receiver.port)
    try {
      const at = cutAt % (body.length + 1)
      await connection.send(Buffer.concat([Buffer.from(`${method} ${workspace.path}?`), query, Buffer.from(head), body.subarray(0, at)]))
      await connection.send(body.subarray(at))
      const answer = await connection.untilClosed()
      return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
    } finally {
      connection.socket.destroy()
    }
  }

  const wires = async () => {
    const { archiveDocuments, documents, contents } = await scene.leftovers(workspace.workspaceId)
    expect(documents).toBe(contents)
    return { archiveDocuments, documents }
  }

  it.each([
    ['query', 'PUT', urlTokens],
    ['query', 'POST', urlTokens],
    ['body', 'POST', bodyTokens],
  ] as const)(
    'in its %s by %s is answered in time, never by a 500, and leaves nothing where it is refused',
    async (what, method, tokens) => {
      const statuses = new Map<number, number>()
      const property = fc.asyncProperty(mutationsOf([...tokens]), fc.nat(), async (mutations, cutAt) => {
        const { before, status } = await withinASecond(async () => ({
          before: await wires(),
          status: await send(method, { [what]: (bytes: Buffer) => mutate(bytes, mutations) }, cutAt),
        }))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        expect([201, 400, 403, 404]).toContain(status)
        const after = await wires()
        if (status === 201) expect(after.archiveDocuments).toBe(before.archiveDocuments + 1)
        else expect(after).toEqual(before)
      })
      await check(property, 150)
      // neither so mild nor so harsh that it says nothing
      expect(statuses.get(201)).toBeGreaterThan(0)
      expect(statuses.get(400)).toBeGreaterThan(0)
      expect(await send(method, {})).toBe(201)
    },
  )
})
