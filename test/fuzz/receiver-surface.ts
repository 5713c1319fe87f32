import { commandRules, type CommandRule, type ParameterName } from '../../src/content-server/parameters.ts'
import { mutate } from '../support/properties.ts'
import { multipartBody, type PartToSend } from '../support/source-system.ts'
import { hostileTexts } from './hostile-values.ts'
import type { Random } from './random.ts'
import { encoded, type FuzzRequest } from './request.ts'
import type { World } from './world.ts'

const boundary = 'FUZZ'

/** Valid and other values of the parameters. */
const values: Record<ParameterName, { valid: readonly string[]; other: readonly string[] }> = {
  contRep: { valid: ['Z1', 'Z1', 'Z1', 'Z1', 'Z2', 'Z3'], other: ['none', 'z1'] },
  docId: { valid: Array.from({ length: 60 }, (_, index) => `D${index}`), other: ['../x', 'x'.repeat(129), '', 'ä', 'D1%00'] },
  compId: { valid: ['data', 'data', 'data1', 'descr', 'note', 'däta.pdf'], other: hostileTexts },
  pVersion: { valid: ['0045', '0046', '0047'], other: ['0048', '47', ''] },
  docProt: { valid: ['rud', 'r', '', 'rcud'], other: ['x', 'rrrrr'] },
  resultAs: { valid: ['ascii', 'html'], other: ['xml', ''] },
  fromOffset: { valid: ['0', '1', '4', '999999999999999'], other: ['9'.repeat(16), '-1', 'x'] },
  toOffset: { valid: ['-1', '0', '3', '999999999999999'], other: ['-2', ''] },
  pattern: { valid: ['a', '0+1+x', '0+9+INV#0+1+K', 'x'.repeat(1_024), 'ü'], other: ['\0', '##', '1e9+2+x', '-1+1+a', '#0+1+x'] },
  caseSensitive: { valid: ['n', 'y'], other: ['maybe', ''] },
  numResults: { valid: ['0', '1', '10', '999999999999999'], other: ['-1', '1e3'] },
  scanPerformed: { valid: ['', 'X', 'true', '1'], other: hostileTexts },
  accessMode: { valid: ['r', 'c', 'u', 'd', 'rcud'], other: ['dr', '', 'rr'] },
  authId: { valid: ['CN=TST', 'CN=NONE'], other: ['', 'CN=ä'] },
  expiration: { valid: ['20991231235959', '20200101000000'], other: ['0', '99999999999999', 'soon'] },
  secKey: { valid: ['MIIB', Buffer.alloc(3_000, 48).toString('base64')], other: ['', '%%%'] },
}

const valueOf = (random: Random, name: ParameterName, { canaries }: World): string => {
  if (name === 'secKey' && random.chance(0.5)) return canaries.credential
  return random.pick(random.chance(0.95) ? values[name].valid : values[name].other)
}

const isSignature = (name: string) => ['accessMode', 'authId', 'expiration', 'secKey'].includes(name)

const queryOf = (random: Random, { command, parameters }: CommandRule, world: World): string => {
  const named = parameters
    .filter(({ name, mandatory }) => random.chance(mandatory ? 0.98 : isSignature(name) ? 0.15 : 0.4))
    .map(({ name }) => `${name}=${encoded(random, random.chance(0.02) ? random.pick(hostileTexts) : valueOf(random, name, world))}`)
  const odd = random.chance(0.1)
    ? [
        random.pick([
          'contRep=Z2',
          'docId=OTHER',
          '&&',
          '=',
          'a=b=c',
          'compid=data',
          'PVERSION=0045',
          '%63ontRep=Z1',
          '\xe4=\xe4',
          'x'.repeat(3_000),
        ]),
        `access_token=${world.canaries.credential}`,
      ]
    : []
  const tokens = random.chance(0.9) ? [...named, ...odd] : [...odd, ...named.toReversed()]
  const name = random.chance(0.97)
    ? command
    : random.pick([command.toUpperCase(), `${command}=`, '', `secKey=${world.canaries.credential}`, '__proto__', 'nothing'])
  return [name, ...tokens].join('&')
}

const content = (random: Random, world: World): Buffer =>
  random.pick([
    () => Buffer.alloc(0),
    () => Buffer.from(`${world.canaries.content} ${random.below(1_000)}`),
    () => Buffer.alloc(random.pick([1, 4_000, 8_192, 300_000]), random.below(256)),
    () => Buffer.from(`0 5 INV\n5 3 K ${random.below(10)}\nDAIN0 10 x\nDKEY0 4 y\n`),
    () => Buffer.from(JSON.stringify({ password: world.canaries.content, a: [1, { token: 'x' }] })),
    () => Buffer.from(`<a><password>${world.canaries.content}</password><b/></a>`),
    () => Buffer.from(`password=${world.canaries.content}&a=1`),
  ])()

const typeOf = (random: Random, body: Buffer) => {
  const text = body.subarray(0, 20).toString('latin1')
  if (text.startsWith('{')) return 'application/json'
  if (text.startsWith('<')) return 'text/xml'
  if (text.startsWith('password')) return 'application/x-www-form-urlencoded'
  return random.pick([
    'application/pdf',
    'text/plain',
    'image/tiff; version=1',
    'text/html',
    '',
    'x'.repeat(300),
    'application/pdf; charset="\xe4"',
  ])
}

const partOf = (random: Random, command: string): PartToSend => {
  const body = Buffer.from(random.pick(['', 'hello', '\r\n--FUZZ', '--', 'x'.repeat(9_000)]))
  const headers: PartToSend['headers'] = {
    'X-compId': random.pick(random.chance(0.95) ? values.compId.valid : hostileTexts).replaceAll(/[\r\n]/g, ' '),
  }
  if (command === 'mCreate' || random.chance(0.05))
    headers['X-docId'] = random.pick(random.chance(0.95) ? values.docId.valid : values.docId.other)
  if (random.chance(0.7)) headers['Content-Type'] = random.pick(['application/pdf', 'text/plain', '', ';', 'a'.repeat(200)])
  if (random.chance(0.7))
    headers['Content-Length'] = random.chance(0.97) ? body.length : random.pick([-1, 0, 5, 'x', '1e3', '99999999999999999999'])
  return { headers, body }
}

const tokens = ['--FUZZ', '\r\n', 'X-compId: ', '--', '\0', ':', '\n', 'Content-Length: 5', '\xff']

const multipart = (random: Random, command: string): Buffer => {
  const body = multipartBody(
    boundary,
    Array.from({ length: random.below(5) }, () => partOf(random, command)),
  )
  if (random.chance(0.88)) return body
  const kinds = ['flip', 'drop', 'duplicate', 'insert', 'truncate'] as const
  return mutate(
    body,
    Array.from({ length: 1 + random.below(3) }, () => ({
      kind: random.pick(kinds),
      position: random.below(1_000_000),
      lengthBytes: 1 + random.below(30),
      inserted: Buffer.from(random.several(tokens, 4).join(''), 'latin1'),
    })),
  )
}

const oddMultipartTypes = [
  `multipart/form-data; boundary="${boundary}"`,
  `multipart/mixed; boundary=${boundary}; boundary=B`,
  'multipart/form-data',
  'multipart/form-data; boundary=',
  `multipart/form-data; boundary=${'b'.repeat(300)}`,
]

const multipartType = (random: Random) =>
  random.chance(0.9) ? `multipart/form-data; boundary=${boundary}` : random.pick(oddMultipartTypes)

/** Generates a request to the receiver. The rules of the commands describe what it sends. */
export const receiverRequest = (random: Random, world: World): FuzzRequest => {
  const workspace = random.chance(0.9) ? world.steady.name : random.pick([world.changing.name, 'acme/none', '%00/%ff', '../a'])
  const tail = random.chance(0.95) ? '' : random.pick(['/', '/file.pdf', '/%2e%2e/', '//', '/%'])
  const path = `/receiver/${workspace}${tail}`
  const rule = random.pick(commandRules)
  const method = random.chance(0.94)
    ? random.pick(rule.methods)
    : random.pick(['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'])
  const signed = rule.access !== null && random.chance(0.1) ? random.pick(world.signedQueries) : undefined
  const query = signed === undefined ? queryOf(random, rule, world) : random.chance(0.5) ? signed : recut(random, signed)

  const headers: FuzzRequest['headers'] = [['Host', 'relay']]
  const hasBody = ['PUT', 'POST'].includes(method) || random.chance(0.03)
  const isMultipart = method === 'POST' && random.chance(0.95)
  const body = hasBody ? (isMultipart ? multipart(random, rule.command) : content(random, world)) : undefined
  if (body) headers.push(['Content-Type', isMultipart ? multipartType(random) : typeOf(random, body)])
  if (random.chance(0.1))
    headers.push(['Authorization', `Basic ${world.canaries.credential}`], ['Cookie', `a=${world.canaries.credential}`])
  if (random.chance(0.1)) headers.push(['X-Api-Key', world.canaries.credential])
  if (random.chance(0.1))
    headers.push([random.pick(['X-Relay-Object-Type', 'X-Relay-Object-Id', 'X-Relay-Ar-Object']), random.pick(headerTexts)])
  // One address may send few certificates.
  if (random.chance(0.9)) headers.push(['X-Forwarded-For', `${random.pick(headerTexts)}, 10.${random.below(256)}.${random.below(256)}.1`])
  if (random.chance(0.03)) headers.push(['X-Relay-Hops', random.pick(['', 'x', '01ARZ3NDEKTSV4RRFFQ69G5FAV', 'a,b,c'])])
  if (random.chance(0.05)) headers.push(['Range', 'bytes=0-1'], ['If-Match', '*'], ['If-None-Match', '*'])
  if (random.chance(0.03)) headers.push(['Content-Encoding', 'gzip'])
  if (random.chance(0.03)) headers.push(['Expect', '100-continue'])
  return { surface: 'receiver', method, target: `${path}?${query}`, headers, ...(body && { body, isChunked: random.chance(0.15) }) }
}

const headerTexts = ['BKPF', '', '\xe4\xf6', 'a'.repeat(3_000), "' or 1=1", '127.0.0.1', '::1', '[::]', 'unknown', '1.2.3.4:80', '%00']

/** Changes a signed query, so that its signature no longer fits. */
const recut = (random: Random, query: string): string =>
  random.pick([
    () => query.replace(/^\w+/, random.pick(['delete', 'update', 'get', 'create'])),
    () => query.replace(/docId=(\w)/, 'docId=$1$1'),
    () => query.replace('accessMode=r', 'accessMode=rcud'),
    () => `${query}&docId=D1`,
    () => query.slice(0, random.below(query.length)),
    () => query.replace(/secKey=/, 'secKey=%20'),
    () => query.split('&').toReversed().join('&'),
  ])()
