import { isUtf8 } from 'node:buffer'
import { execFile, spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { ServerFault } from './old-content-server-faults.ts'

const run = promisify(execFile)

/** A refusal by the content server: its text is the header X-ErrorDescription. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, description: string) {
    super(description)
    this.name = 'Refusal'
    this.status = status
  }
}

/** An answer of the content server. */
export interface Answer {
  status: number
  headers: Record<string, string | number>
  body: Buffer
}

export const nothing = Buffer.alloc(0)

export const answerOf = (status: number, body: string | Buffer = nothing, headers: Record<string, string> = {}): Answer => ({
  status,
  headers,
  body: Buffer.from(body),
})
/** Returns an answer of lines in ASCII. */
export const asciiAnswer = (body: string, status = 200): Answer =>
  answerOf(status, body, { 'Content-Type': 'text/plain; charset=us-ascii' })

/** A request line of the interface: the first token of the query is the command, and the values are percent-encoded. */
export interface Call {
  command: string
  /** The parameters as they are written, in the order of the URL. */
  parameters: [name: string, raw: string][]
  /** Returns a decoded value, or undefined. A plus sign is a plus sign. */
  get(name: string): string | undefined
  /** Returns a decoded value. Its absence is a malformed request. */
  need(name: string): string
  /** Returns a whole number. */
  number(name: string, fallback: number): number
  /** Returns the bytes of a value, which may be in any charset. */
  bytes(name: string): Buffer
}

const bytesOf = (raw: string): Buffer =>
  Buffer.from(
    raw.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )

/** Returns the text of bytes in UTF-8, or else in Windows-1252. */
const textOf = (bytes: Buffer): string => new TextDecoder(isUtf8(bytes) ? 'utf8' : 'windows-1252').decode(bytes)

/** Reads the request line, as a server with these faults does. */
export const parseCall = (url: string, faults: ReadonlySet<ServerFault> = new Set()): Call => {
  const spaced = faults.has('plus_is_space') ? url.replaceAll('+', '%20') : url
  const read = faults.has('names_decoded_twice') ? spaced.replaceAll('%25', '%') : spaced
  const start = read.indexOf('?')
  const [command = '', ...tokens] = start === -1 ? [] : read.slice(start + 1).split('&')
  const parameters = tokens.map((token): [string, string] => {
    const equals = token.indexOf('=')
    return equals === -1 ? [token, ''] : [token.slice(0, equals), token.slice(equals + 1)]
  })
  const rawOf = (name: string) => parameters.find(([other]) => other === name)?.[1]
  const get = (name: string) => {
    const raw = rawOf(name)
    return raw === undefined ? undefined : textOf(bytesOf(raw))
  }
  const need = (name: string): string => {
    const value = get(name)
    if (!value) throw new Refusal(400, `parameter ${name} is missing`)
    return value
  }
  const number = (name: string, fallback: number): number => {
    const value = Number(get(name) ?? fallback)
    if (!Number.isInteger(value)) throw new Refusal(400, `parameter ${name} is not a number`)
    return value
  }
  const bytes = (name: string) => bytesOf(rawOf(name) ?? '')
  if (faults.has('names_in_bytes') && bytes('compId').length > 255) throw new Refusal(400, 'compId is too long')
  if (faults.has('names_utf8_only') && !isUtf8(bytes('compId'))) throw new Refusal(400, 'compId is not UTF-8')
  return { command, parameters, get, need, number, bytes }
}

export interface Part {
  headers: Record<string, string>
  body: Buffer
}

const decoders: Record<string, (text: string) => Buffer> = {
  base64: (text) => Buffer.from(text, 'base64'),
  'quoted-printable': (text) => bytesOf(text.replaceAll(/=\r\n/g, '').replaceAll('%', '%25').replaceAll('=', '%')),
}

/** Reads the parts of a multipart body. @param decodes if false, a part in base64 or quoted-printable stays as it is */
export const readParts = (contentType: string, body: Buffer, decodes = true): Part[] => {
  const boundary = /boundary="?([^";]+)"?/i.exec(contentType)?.[1]
  if (!boundary) throw new Refusal(400, 'the boundary is missing')
  // Latin 1 has one character per byte.
  const [, ...sections] = `\r\n${body.toString('latin1')}`.split(`\r\n--${boundary}`)
  if (!sections.at(-1)?.startsWith('--')) throw new Refusal(400, 'the closing boundary is missing')
  return sections.slice(0, -1).flatMap((section) => {
    if (section.trim() === '') return []
    const end = section.indexOf('\r\n\r\n')
    const lines = section.slice(0, Math.max(end, 0)).split('\r\n').filter(Boolean)
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':')
        const value = Buffer.from(line.slice(colon + 1).trim(), 'latin1')
        return [line.slice(0, colon).trim().toLowerCase(), value.toString('utf8')]
      }),
    )
    const content = Buffer.from(section.slice(end + 4), 'latin1')
    const told = headers['content-length']
    if (!headers['x-compid']) throw new Refusal(400, 'a part has no X-compId')
    if (told !== undefined && Number(told) !== content.length) throw new Refusal(400, `a part has not the ${told} bytes that it tells`)
    const decode = decodes ? decoders[headers['content-transfer-encoding'] ?? ''] : undefined
    return { headers, body: decode ? decode(content.toString('latin1')) : content }
  })
}

/** Writes a multipart body. A body without parts is the boundary twice. @param bare if true, lines end with LF alone */
export const writeParts = (
  boundary: string,
  parts: { headers: [name: string, value: string | number][]; body: Buffer }[],
  bare = false,
): Buffer => {
  const end = bare ? '\n' : '\r\n'
  return Buffer.concat([
    ...parts.flatMap(({ headers, body }) => [
      Buffer.from(`--${boundary}${end}${headers.map(([name, value]) => `${name}: ${value}${end}`).join('')}${end}`),
      body,
      Buffer.from(bare && body.length === 0 ? '' : end),
    ]),
    Buffer.from(`${parts.length === 0 ? `--${boundary}${end}` : ''}--${boundary}--${end}`),
  ])
}

/** Returns the headers of two dates. @param names what the interface calls a date and a time there */
export const stamps = ([date, time]: [date: string, time: string], created: Date, modified: Date): [string, string][] => {
  const [createdAt, modifiedAt] = [created, modified].map((moment) => moment.toISOString())
  return [
    [`${date}C`, createdAt?.slice(0, 10) ?? ''],
    [`${time}C`, createdAt?.slice(11, 19) ?? ''],
    [`${date}M`, modifiedAt?.slice(0, 10) ?? ''],
    [`${time}M`, modifiedAt?.slice(11, 19) ?? ''],
  ]
}

/** The letter of the accessMode that a command needs, and the parameters that its signature covers. */
const signatures: Record<string, { letter: string; signed: string[] }> = {
  info: { letter: 'r', signed: ['contRep', 'docId'] },
  get: { letter: 'r', signed: ['contRep', 'docId'] },
  docGet: { letter: 'r', signed: ['contRep', 'docId'] },
  search: { letter: 'r', signed: ['contRep', 'docId'] },
  attrSearch: { letter: 'r', signed: ['contRep', 'docId'] },
  create: { letter: 'c', signed: ['contRep', 'docId', 'compId', 'docProt'] },
  mCreate: { letter: 'c', signed: ['contRep', 'docId', 'docProt'] },
  update: { letter: 'u', signed: ['contRep', 'docId', 'compId'] },
  append: { letter: 'u', signed: ['contRep', 'docId', 'compId'] },
  delete: { letter: 'd', signed: ['contRep', 'docId', 'compId'] },
}

/** What a server with a fault does not look at. */
export interface Leniency {
  signature: boolean
  expiration: boolean
  accessMode: boolean
}

// Answers each line with the status of OpenSSL, 0 if a certificate of the file has signed the message.
const verifyAll = `
while read -r _; do
  openssl cms -verify -binary -inform DER -noverify -nointern -certfile certificates.pem -content message -in signature.p7s >/dev/null 2>&1
  echo $?
done`

/**
 * Creates the check of signed URLs. OpenSSL verifies the signatures: the detached PKCS#7 message covers the values of the signed parameters
 * as they are written, one after the other in the order of the URL. A shell starts OpenSSL, because a worker of jest, which is large, takes
 * tens of milliseconds of processor time to start a process.
 */
export const createSignatureCheck = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'old-content-server-'))
  const startShell = () => {
    const shell = spawn('sh', ['-c', verifyAll], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = new Promise<unknown>((resolve) => shell.once('error', resolve).once('close', resolve))
    // What was written to a shell that has ended has no answer.
    shell.stdin.on('error', () => {})
    const lines = createInterface({ input: shell.stdout })
    void ended.then(() => lines.close())
    return { stdin: shell.stdin, statuses: lines[Symbol.asyncIterator](), ended }
  }
  let shell: ReturnType<typeof startShell> | undefined
  let last: Promise<unknown> = Promise.resolve()

  const verify = async (message: string, secKey: Buffer, certificates: string[]): Promise<boolean> => {
    const contents = { message: Buffer.from(message, 'latin1'), 'signature.p7s': secKey, 'certificates.pem': certificates.join('\n') }
    await Promise.all(Object.entries(contents).map(([name, content]) => writeFile(join(folder, name), content)))
    shell ??= startShell()
    shell.stdin.write('\n')
    return (await shell.statuses.next()).value === '0'
  }
  /** Verifies one message at a time. Without an answer of the shell, it is not signed. */
  const isSigned = (...args: Parameters<typeof verify>): Promise<boolean> => {
    const verified = last.then(() => verify(...args))
    last = verified.catch(() => {})
    return verified
  }

  return {
    /** @param certificates the active ones of the repository and the authId of the call, as PEM */
    check: async (call: Call, certificates: string[], lenient: Leniency): Promise<void> => {
      const rule = signatures[call.command]
      if (!rule) return
      const secKey = call.get('secKey')
      if (!secKey) throw new Refusal(401, 'signature missing for repository')
      const expiration = call.need('expiration')
      if (!/^\d{14}$/.test(expiration)) throw new Refusal(401, 'expiration is malformed')
      const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)
      if (expiration < now && !lenient.expiration) throw new Refusal(401, 'expired')
      if (!call.need('accessMode').includes(rule.letter) && !lenient.accessMode) throw new Refusal(401, 'access mode not sufficient')
      call.need('authId')
      if (lenient.signature) return
      if (certificates.length === 0) throw new Refusal(401, 'no active certificate for this authId')
      const signed = new Set([...rule.signed, 'accessMode', 'authId', 'expiration'])
      const message = call.parameters.flatMap(([name, raw]) => (signed.has(name) ? [raw] : [])).join('')
      if (!(await isSigned(message, Buffer.from(secKey, 'base64'), certificates))) throw new Refusal(401, 'signature invalid')
    },
    close: async () => {
      await last
      shell?.stdin.end()
      await shell?.ended
      await rm(folder, { recursive: true })
    },
  }
}

/**
 * Returns a certificate as PEM, from the body of putCert: an X.509 certificate or a PKCS#7 message, as DER or PEM. Of several, returns the
 * one that has issued none of the others.
 * @param takesFirst if true, returns the first one
 */
export const readCertificate = async (body: Buffer, takesFirst = false): Promise<string> => {
  const openssl = async (...command: string[]): Promise<string> => {
    const child = run('openssl', command)
    child.child.stdin?.on('error', () => {}).end(body)
    return (await child).stdout
  }
  const form = body.includes('-----BEGIN') ? 'PEM' : 'DER'
  const attempts = [() => openssl('pkcs7', '-inform', form, '-print_certs'), () => openssl('x509', '-inform', form)]
  for (const attempt of attempts) {
    const pem = await attempt().catch(() => '')
    const all = pem.match(/-----BEGIN CERTIFICATE-----[^]+?-----END CERTIFICATE-----/g) ?? []
    const parsed = all.map((text) => new X509Certificate(text))
    const last = parsed.findIndex((one) => parsed.every((other) => other === one || !other.checkIssued(one)))
    const certificate = all[takesFirst ? 0 : last]
    if (certificate !== undefined) return certificate
  }
  throw new Refusal(406, 'the certificate is not recognised')
}

/** Returns the offsets at which `pattern` is in `content`, as `search` reports them. */
export const offsetsOf = (content: Buffer, pattern: Buffer, call: Call): number[] => {
  const text = (bytes: Buffer) => (call.get('caseSensitive') === 'y' ? bytes.toString('latin1') : bytes.toString('latin1').toLowerCase())
  const [haystack, needle] = [text(content), text(pattern)]
  const all: number[] = []
  for (let at = haystack.indexOf(needle); at !== -1; at = haystack.indexOf(needle, at + 1)) all.push(at)
  return selected(all, call, (offset) => offset)
}

/** Selects hits by fromOffset, toOffset and numResults. If fromOffset is behind toOffset, the search goes backwards. */
const selected = <Hit>(hits: Hit[], call: Call, offsetOf: (hit: Hit) => number): Hit[] => {
  const [from, to] = [call.number('fromOffset', 0), call.number('toOffset', -1)]
  const isBackwards = to >= 0 && from > to
  const [low, high] = isBackwards ? [to, from] : [from, to === -1 ? Infinity : to]
  const inside = hits.filter((hit) => offsetOf(hit) >= low && offsetOf(hit) <= high)
  return (isBackwards ? inside.toReversed() : inside).slice(0, call.number('numResults', 1))
}

/** Returns offset and length of the entries of an index (component `descr`) that contain every value of the pattern. */
export const entriesOf = (index: Buffer, call: Call): [offset: number, length: number][] => {
  const conditions = call
    .bytes('pattern')
    .toString('latin1')
    .split('#')
    .map((condition) => /^(\d+)\+(\d+)\+(.*)$/s.exec(condition))
  const fold = (value: string) => (call.get('caseSensitive') === 'y' ? value : value.toLowerCase())
  const entries = index
    .toString('latin1')
    .split('\n')
    .map((line) => /^(\d+) (\d+) DAIN(.*)$/.exec(line))
    .filter((entry) => entry !== null)
  const isMatch = (values: string) =>
    conditions.every((condition) => {
      if (!condition) throw new Refusal(400, 'the pattern is malformed')
      const [, offset, length, value = ''] = condition
      return fold(values.slice(Number(offset), Number(offset) + Number(length))).includes(fold(value))
    })
  const hits = entries
    .filter(([, , , values = '']) => isMatch(values))
    .map(([, offset, length]): [number, number] => [Number(offset), Number(length)])
  return selected(hits, call, ([offset]) => offset)
}
