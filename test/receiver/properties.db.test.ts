import { isUtf8 } from 'node:buffer'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import * as fc from 'fast-check'
import { boundaryOf, MultipartError, readParts } from '../../src/content-server/multipart.ts'
import { parseQuery, readCommand, splitTarget } from '../../src/receiver/command.ts'
import { Refusal, toRefusal } from '../../src/receiver/refusal.ts'
import { fullOr } from '../support/full-run.ts'
import { bytesOf, check, mutate, mutationsOf, withinASecond } from '../support/properties.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { multipartBody, openSocket, part } from '../support/source-system.ts'
import { bodyTokens, boundary, cuts, multipartBodies, split } from './multipart-bodies.ts'

/** Returns the result of `work`, or the refusal that it throws. Rethrows any other error. */
const orRefusal = <T>(work: () => T | Promise<T>): Promise<T | Refusal> =>
  withinASecond(async () => {
    try {
      return await work()
    } catch (thrown) {
      if (thrown instanceof Refusal || thrown instanceof MultipartError) return toRefusal(thrown)
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

  test('is parsed into its parameters in order, decoded and raw, for any encoding of their bytes', async () => {
    const property = fc.asyncProperty(fc.array(fc.tuple(name, bytes, encoded), { maxLength: 8 }), async (parameters) => {
      const sent = parameters.map(([key, value, encodingIndexes]) => ({
        name: key,
        raw: [...value].map((byte, index) => encodings[encodingIndexes[index % encodingIndexes.length]!]!(byte)).join(''),
        value: isUtf8(value) ? value.toString() : new TextDecoder('windows-1252').decode(value),
      }))
      const target = `/receiver/a/b?create${sent.map(({ name: key, raw }) => `&${key}=${raw}`).join('')}`
      const { path, query } = splitTarget(target)
      const first = sent.filter(
        ({ name: key }, index) => sent.findIndex((other) => other.name.toLowerCase() === key.toLowerCase()) === index,
      )
      expect({ path, ...parseQuery(query) }).toEqual({ path: '/receiver/a/b', command: 'create', parameters: first })
    })
    await check(property, fullOr(2_000, 500))
  })

  test('is parsed or refused within a second of processor time, for any bytes', async () => {
    const property = fc.asyncProperty(
      bytesOf(urlTokens, 40),
      fc.constantFrom(1, 1, 1, 500),
      fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', ''),
      async (bytesOfTarget, times, method) => {
        const target = bytesOfTarget.toString('latin1').repeat(times)
        const outcome = await orRefusal(() => readCommand(method, parseQuery(splitTarget(`/x?create${target}`).query)))
        if (outcome instanceof Refusal) expect(outcome.code).toBe('invalid_parameter')
        else expect(outcome.rule.parameters.every(({ name: key, mandatory }) => !mandatory || outcome.get(key) !== '')).toBe(true)
        await orRefusal(() => readCommand(method, parseQuery(splitTarget(target).query)))
      },
    )
    await check(property, fullOr(1_000, 250))
  })
})

describe('a multipart body', () => {
  const readAll = async (chunks: AsyncIterable<Buffer>, isSlow: boolean, limits = { boundary, maxParts: 20 }) => {
    const read: { compId: string | undefined; contentType: string | undefined; body: Buffer }[] = []
    for await (const { header: find, body } of readParts(chunks, limits)) {
      if (isSlow) await delay(1)
      read.push({ compId: find('x-compid'), contentType: find('content-type'), body: await buffer(body) })
    }
    return read
  }

  test('has the same parts wherever it is split, for any content and reading speed', async () => {
    // Blanks around a value are not part of it.
    const asSent = (value: string) => Buffer.from(value.replaceAll(/^[ \t]+|[ \t]+$/g, '')).toString('latin1')
    const property = fc.asyncProperty(multipartBodies, cuts, fc.boolean(), async (body, splitAt, isSlow) => {
      const read = await withinASecond(() => readAll(split(body.bytes, splitAt), isSlow))
      const expected = body.parts.map(({ compId, contentType }) => ({ compId: asSent(compId), contentType: asSent(contentType) }))
      expect(read.map(({ compId, contentType }) => ({ compId, contentType }))).toEqual(expected)
      // Buffer.equals, because jest compares 64 KiB byte by byte in JavaScript.
      expect(read.every((one, index) => one.body.equals(body.parts[index]!.body))).toBe(true)
    })
    await check(property, fullOr(1_500, 400))
  })

  test('is read or refused within a second of processor time if its bytes are damaged', async () => {
    const outcomes = new Set<string>()
    const property = fc.asyncProperty(
      multipartBodies,
      mutationsOf(bodyTokens),
      cuts,
      fc.boolean(),
      async (body, mutations, splitAt, isSlow) => {
        const outcome = await orRefusal(() => readAll(split(mutate(body.bytes, mutations), splitAt), isSlow))
        outcomes.add(outcome instanceof Refusal ? outcome.code : 'parts')
      },
    )
    await check(property, fullOr(1_500, 400))
    expect([...outcomes].toSorted()).toEqual(['invalid_parameter', 'parts'])
  })

  test('is read or refused with any Content-Type', async () => {
    const tokens = ['multipart/form-data', ';', ' ', 'boundary=', 'Boundary="', '"', 'B-1', '\xe4'.repeat(150), '\t']
    const body = Buffer.from('--B-1\r\n\r\nx\r\n--B-1--')
    const everyThird = { anywhere: [], around: [], everyBytes: 3 }
    const outcomes = new Set<string>()
    const property = fc.asyncProperty(bytesOf(tokens, 8), async (bytes) => {
      const type = `multipart/form-data; boundary=${bytes.toString('latin1')}`
      for (const contentType of [type, bytes.toString('latin1')]) {
        const outcome = await orRefusal(() => readAll(split(body, everyThird), false, { boundary: boundaryOf(contentType), maxParts: 20 }))
        outcomes.add(outcome instanceof Refusal ? outcome.code : 'parts')
      }
    })
    await check(property, fullOr(500, 200))
    expect([...outcomes].toSorted()).toEqual(['invalid_parameter', 'parts'])
  })
})

const scene = share(await startScene({ limits: { receiver: { maxParts: 5 } } }))
const workspace = await scene.workspace()

describe('a damaged create request', () => {
  // More than the store buffers in memory, so that bytes are written before the request ends.
  const large = 'x'.repeat(300_000)
  // Inserted after the mutations, which would otherwise hit almost only these bytes.
  const placeholder = '%LARGE%'
  const whole = multipartBody(boundary, [
    part('data', `${large}\r\n--B-`, 'application/pdf; version=1.7'),
    part('descr', '0 5 X\n'),
    part('empty', ''),
  ])
  const content = Buffer.from(String(whole).replace(large, placeholder))
  const insertLarge = (body: Buffer) => Buffer.from(body.toString('latin1').replace(placeholder, large), 'latin1')
  let count = 0

  /** Sends a create request, intact or damaged. @returns the status of the answer */
  const send = async (
    method: 'PUT' | 'POST',
    damage: { query?: (query: Buffer) => Buffer; body?: (body: Buffer) => Buffer },
    cutAt = 0,
  ) => {
    count += 1
    const plain = Buffer.from(`create&pVersion=0045&contRep=Z1&docId=D${count}&docProt=rud${method === 'PUT' ? '&compId=d%C3%A4ta' : ''}`)
    const query = damage.query?.(plain) ?? plain
    const body = insertLarge(damage.body?.(content) ?? content)
    const head = ` HTTP/1.1\r\nHost: cs\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`
    const connection = await openSocket(scene.api.port)
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

  const countRows = async () => {
    const { archiveDocuments, documents, contents } = await workspace.countRows()
    expect(documents).toBe(contents)
    return { archiveDocuments, documents }
  }

  test.each([
    ['query', 'PUT', urlTokens],
    ['query', 'POST', urlTokens],
    ['body', 'POST', bodyTokens],
  ] as const)(
    'in its %s by %s is answered in time, never with 500, and stores nothing if it is refused',
    async (damaged, method, tokens) => {
      const statuses = new Map<number, number>()
      const property = fc.asyncProperty(mutationsOf([...tokens]), fc.nat(), async (mutations, cutAt) => {
        const { before, status } = await withinASecond(async () => ({
          before: await countRows(),
          status: await send(method, { [damaged]: (bytes: Buffer) => mutate(bytes, mutations) }, cutAt),
        }))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        expect([201, 400, 403, 404]).toContain(status)
        const after = await countRows()
        if (status === 201) expect(after.archiveDocuments).toBe(before.archiveDocuments + 1)
        else expect(after).toEqual(before)
      })
      await check(property, fullOr(150, 60))
      // The damage must be mild enough and severe enough for both answers to occur.
      expect(statuses.get(201)).toBeGreaterThan(0)
      expect(statuses.get(400)).toBeGreaterThan(0)
      expect(await send(method, {})).toBe(201)
    },
  )
})
