import { mutate } from '../support/properties.ts'
import type { Random } from './random.ts'
import { serialize, type FuzzRequest } from './request.ts'

const CRLF = '\r\n'
const latin1 = (text: string) => Buffer.from(text, 'latin1')

const withHeader = (request: FuzzRequest, ...lines: string[]): Buffer => {
  const bytes = serialize(request)
  const end = bytes.indexOf(CRLF) + 2
  return Buffer.concat([bytes.subarray(0, end), latin1(lines.map((line) => line + CRLF).join('')), bytes.subarray(end)])
}

/** Bytes that no HTTP client sends, made of a request. */
const damages: Record<string, (random: Random, request: FuzzRequest) => Buffer> = {
  'cut off': (random, request) => {
    const bytes = serialize(request)
    return bytes.subarray(0, random.below(bytes.length))
  },
  'changed bytes': (random, request) =>
    mutate(
      serialize(request),
      Array.from({ length: 1 + random.below(4) }, () => ({
        kind: random.pick(['flip', 'drop', 'duplicate', 'insert'] as const),
        position: random.below(1_000_000),
        lengthBytes: 1 + random.below(12),
        inserted: latin1(random.pick(['\0', CRLF, '\n', ' ', ':', '\xff', '%00', 'HTTP/1.1', '\t'])),
      })),
    ),
  'a wrong Content-Length': (random, request) => {
    const length = (request.body?.length ?? 0) + random.pick([-1, 1, 100, 1_000_000])
    return latin1(
      serialize({ ...request, isChunked: false })
        .toString('latin1')
        .replace(/Content-Length: \d+/, `Content-Length: ${Math.max(length, 0)}`),
    )
  },
  'two Content-Lengths': (random, request) =>
    withHeader(request, `Content-Length: ${random.pick(['0', '5', '-1', '+5', '5, 5', '0x5', '99999999999999999999'])}`),
  'Content-Length and Transfer-Encoding': (random, request) =>
    withHeader(
      request,
      `Transfer-Encoding: ${random.pick(['chunked', 'xchunked', 'chunked, identity', 'identity', ' chunked', 'Chunked', 'chunked\x0b'])}`,
    ),
  'odd chunks': (random, request) => {
    const { method, target, headers } = request
    const head = [
      `${method} ${target} HTTP/1.1`,
      ...headers.map(([name, value]) => `${name}: ${value}`),
      'Transfer-Encoding: chunked',
      'Connection: close',
      '',
      '',
    ]
    const chunks = random.pick([
      `5${CRLF}hello${CRLF}0${CRLF}${CRLF}`,
      `5;a=${'b'.repeat(20_000)}${CRLF}hello${CRLF}0${CRLF}${CRLF}`,
      `FFFFFFFFFFFFFFFFF${CRLF}hello`,
      `-5${CRLF}hello${CRLF}`,
      `5${CRLF}helloX${CRLF}0${CRLF}${CRLF}`,
      `5\nhello\n0\n\n`,
      ` 5 ${CRLF}hello${CRLF}0${CRLF}${CRLF}`,
      `5${CRLF}hello${CRLF}0${CRLF}X-Trailer: a${CRLF}Content-Length: 9${CRLF}${CRLF}`,
      `0${CRLF}${'X-Trailer: a\r\n'.repeat(5_000)}${CRLF}`,
      `5${CRLF}hel`,
      `g${CRLF}`,
      '1\r\na\r\n'.repeat(3_000),
    ])
    return latin1(head.join(CRLF) + chunks)
  },
  'a head that is too large': (random, request) =>
    random.chance(0.5)
      ? withHeader(request, `X-Large: ${'a'.repeat(70_000)}`)
      : withHeader(request, ...Array.from({ length: 2_500 }, (_, index) => `X-Many-${index}: a`)),
  'many equal headers': (random, request) => {
    const [name, value] = random.pick(request.headers)
    return withHeader(request, ...Array.from({ length: 100 }, () => `${name}: ${value}`))
  },
  'an odd header': (random, request) =>
    withHeader(
      request,
      random.pick([
        'X-Nul: a\0b',
        'no colon',
        ': no name',
        'X Space: a',
        'X-Fold: a\r\n b',
        'X-Bare: a\rb',
        'X-Bare: a\nHost: b',
        'Host: other',
        'X-\xe4: \xe4',
        'Upgrade: websocket',
        'Upgrade: h2c',
        'Expect: 200-maybe',
        'Trailer: Host',
        'Connection: Host, Authorization',
      ]),
    ),
  'another protocol': (random, { target }) =>
    latin1(
      random.pick([
        `GET ${target}${CRLF}`,
        `GET ${target} HTTP/0.9${CRLF}${CRLF}`,
        `GET ${target} HTTP/2.0${CRLF}${CRLF}`,
        `PRI * HTTP/2.0${CRLF}${CRLF}SM${CRLF}${CRLF}\0\0\0\x04\0\0\0\0\0`,
        '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
        `get ${target} HTTP/1.1${CRLF}Host: relay${CRLF}${CRLF}`,
        `CONNECT relay:443 HTTP/1.1${CRLF}Host: relay${CRLF}${CRLF}`,
        `OPTIONS * HTTP/1.1${CRLF}Host: relay${CRLF}Connection: close${CRLF}${CRLF}`,
        `GET ${target} HTTP/1.1${CRLF}Connection: close${CRLF}${CRLF}`,
        `GET ${target} HTTP/1.0${CRLF}${CRLF}`,
        CRLF.repeat(500),
        '\0'.repeat(200),
        '',
      ]),
    ),
  'the absolute form': (_random, request) => serialize({ ...request, target: `http://relay${request.target}` }),
  'a second request behind it': (_random, request) => {
    const first = latin1(serialize(request).toString('latin1').replace('Connection: close\r\n', ''))
    return Buffer.concat([first, latin1(`GET /healthz HTTP/1.1${CRLF}Host: relay${CRLF}Connection: close${CRLF}${CRLF}`)])
  },
}

const damageNames = Object.keys(damages)

/** Returns the bytes of a damaged request and the name of the damage. */
export const damaged = (random: Random, request: FuzzRequest): { name: string; bytes: Buffer } => {
  const name = random.pick(damageNames)
  return { name, bytes: damages[name]!(random, request) }
}
