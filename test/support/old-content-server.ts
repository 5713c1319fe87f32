import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerFault } from './old-content-server-faults.ts'
import {
  answerOf,
  asciiAnswer,
  createSignatureCheck,
  entriesOf,
  nothing,
  offsetsOf,
  parseCall,
  readCertificate,
  readParts,
  Refusal,
  stamps,
  writeParts,
  type Answer,
  type Call,
} from './old-content-server-wire.ts'

export interface OldComponent {
  compId: string
  /** The content type that was received, parameters included. */
  contentType: string
  body: Buffer
  /** More than `body` has, if the server keeps the beginning only. */
  sizeBytes: number
  sha256: string
  created: Date
  modified: Date
}

export interface OldDocument {
  created: Date
  modified: Date
  components: OldComponent[]
}

/** Bytes that were sent, or their beginning. */
type Received = Pick<OldComponent, 'body' | 'sizeBytes' | 'sha256'>

const received = (body: Buffer): Received => ({
  body,
  sizeBytes: body.length,
  sha256: createHash('sha256').update(body).digest('hex'),
})

const reasons: Record<number, string> = { 201: 'created', 250: 'missing documents created' }
const reads = new Set(['info', 'get', 'docGet', 'search', 'attrSearch'])
const pVersions = new Set(['0045', '0046', '0047'])

/**
 * Starts a content server that is written from the description of the protocol and shares no code with the relay. It keeps documents in
 * memory. With `isSigned`, it serves only requests that are signed with an active certificate.
 * @param keptMaxBytes of a component sent by PUT. Of the rest, only the length is kept, so that large documents need no memory
 */
export const startOldContentServer = async ({
  repositories = ['Z1'],
  isSigned = false,
  keptMaxBytes = Infinity,
  faults: first = [] as ServerFault[],
  port: wantedPort = 0,
} = {}) => {
  const faults = new Set<ServerFault>(first)
  const documents = new Map<string, OldDocument>()
  const certificates: { contRep: string; authId: string; pem: string; isActive: boolean }[] = []
  const requests: string[] = []
  const timing = { slowMs: 2_000, beforeAnswer: undefined as ((url: string) => Promise<void>) | undefined }
  const signature = await createSignatureCheck()

  const keyOf = (contRep: string, docId: string) => `${contRep}/${docId}`
  const find = (call: Call): OldDocument => {
    const found = documents.get(keyOf(call.need('contRep'), call.need('docId')))
    if (!found) throw new Refusal(404, 'document not found')
    return found
  }
  const component = (document: OldDocument, compId: string | undefined): OldComponent => {
    const names = compId === undefined ? ['data', 'data1'] : [compId]
    const found = names.map((name) => document.components.find((other) => other.compId === name)).find(Boolean)
    if (!found) throw new Refusal(404, 'component not found')
    return found
  }
  const kept = (compId: string, contentType: string | undefined, sent: Received, created = new Date()): OldComponent => {
    if (faults.has('refuses_empty_parameters') && /=\s*(?:;|$)/.test(contentType ?? '')) throw new Refusal(400, 'a parameter is empty')
    return {
      compId,
      contentType: faults.has('loses_charset') ? (contentType ?? '').replace(/;.*/s, '') : contentType || 'application/octet-stream',
      ...(faults.has('truncates') ? received(sent.body.subarray(0, 65_536)) : sent),
      created,
      modified: new Date(),
    }
  }

  /** Returns the components of a multipart body, of which none may occur twice. */
  const componentsOf = (request: IncomingMessage, { body }: Received): (OldComponent & { docId: string | undefined })[] => {
    const parts = readParts(request.headers['content-type'] ?? '', body, !faults.has('keeps_transfer_encoding'))
    const components = parts.map(({ headers, body: content }) => ({
      ...kept(headers['x-compid'] ?? '', headers['content-type'], received(content)),
      docId: headers['x-docid'],
    }))
    const names = components.map(({ docId, compId }) => `${docId}/${compId}`)
    if (new Set(names).size < names.length) throw new Refusal(400, 'a component occurs twice')
    return components
  }

  const store = (contRep: string, docId: string, components: OldComponent[]): void => {
    const now = new Date()
    documents.set(keyOf(contRep, docId), { created: now, modified: now, components })
  }
  const create = (call: Call, components: OldComponent[], docId = call.need('docId')): void => {
    const existing = documents.get(keyOf(call.need('contRep'), docId))
    if (existing && faults.has('exists_is_404')) throw new Refusal(404, 'document not found')
    if (existing && faults.has('create_adds')) existing.components.push(...components)
    else if (existing && !faults.has('create_overwrites')) throw new Refusal(403, 'document already exists')
    else store(call.need('contRep'), docId, components)
  }
  const change = (document: OldDocument, components: OldComponent[]): Answer => {
    Object.assign(document, { components, modified: new Date() })
    return answerOf(200)
  }

  const datesOf = (names: [string, string], created: Date, modified: Date) =>
    faults.has('swaps_dates') ? stamps(names, modified, created) : stamps(names, created, modified)
  const headersOf = (call: Call, { created, modified, components }: OldDocument): [string, string | number][] => [
    ...datesOf(['X-date', 'X-time'], created, modified),
    ['X-numberComps', components.length],
    ['X-contentRep', call.need('contRep')],
    ['X-numComps', components.length],
    ['X-contRep', call.need('contRep')],
    ['X-docId', call.need('docId')],
    ['X-docStatus', 'online'],
    ['X-pVersion', call.need('pVersion')],
  ]
  const partHeadersOf = (
    { compId, contentType, sizeBytes, created, modified }: OldComponent,
    length: number,
  ): [string, string | number][] => [
    ['Content-Type', contentType],
    ['Content-Length', length],
    ['X-compId', compId],
    ['X-Content-Length', sizeBytes + (faults.has('info_size') ? 1 : 0)],
    ...datesOf(['X-compDate', 'X-compTime'], created, modified),
    ['X-compStatus', 'online'],
    ['X-pVersion', '0045'],
  ]
  const damaged = (body: Buffer): Buffer => {
    if (!faults.has('damages_byte') || body.length === 0) return body
    const copy = Buffer.from(body)
    const middle = Math.floor(body.length / 2)
    copy[middle] = (copy[middle] ?? 0) ^ 0xff
    return copy
  }
  const multipart = (call: Call, document: OldDocument, components: OldComponent[], withBodies: boolean): Answer => {
    const extra = withBodies && faults.has('wrong_part_length') ? 1 : 0
    const parts = components.map((one) => ({
      headers: partHeadersOf(one, withBodies ? one.body.length + extra : 0),
      body: withBodies ? damaged(one.body) : nothing,
    }))
    const headers = { 'Content-Type': 'multipart/form-data; boundary=OLDcs42', ...Object.fromEntries(headersOf(call, document)) }
    return { status: 200, headers, body: writeParts('OLDcs42', parts, faults.has('bare_line_feeds')) }
  }

  const commands: Record<string, (call: Call, sent: Received, request: IncomingMessage) => Answer | Promise<Answer>> = {
    'GET serverInfo': (call) => {
      const [day = '', time = ''] = new Date().toISOString().slice(0, 19).split('T')
      const asked = call.get('contRep')
      if (asked !== undefined && !repositories.includes(asked)) throw new Refusal(404, 'repository not found')
      const lines = repositories
        .filter((contRep) => asked === undefined || asked === contRep)
        .map(
          (contRep) =>
            `contRep="${contRep}";contRepDescription="";contRepStatus="running";contRepStatusDescription="";pVersion="0045";\r\n`,
        )
      const server = `serverStatus="running";serverVendorId="old content server";serverVersion="1.0";serverBuild="1";serverTime="${time}";serverDate="${day}";serverStatusDescription="";pVersion="0045";\r\n`
      const all = server + lines.join('')
      return asciiAnswer(faults.has('bare_line_feeds') ? all.replaceAll('\r\n', '\n') : all)
    },
    'PUT putCert': async (call, { body }) => {
      const [contRep, authId] = [call.need('contRep'), call.need('authId')]
      const pem = await readCertificate(body, faults.has('takes_first_certificate')).catch((error: unknown) => {
        if (faults.has('accepts_garbage_certificate')) return ''
        throw error
      })
      if (!certificates.some((other) => other.contRep === contRep && other.authId === authId && other.pem === pem)) {
        certificates.push({ contRep, authId, pem, isActive: faults.has('activates_certificates') })
      }
      return answerOf(200)
    },
    'PUT create': (call, sent, request) => {
      create(call, [kept(call.need('compId'), request.headers['content-type'], sent)])
      return answerOf(201)
    },
    'POST create': (call, sent, request) => {
      try {
        create(call, componentsOf(request, sent))
      } catch (error) {
        if (faults.has('half_created')) create(call, [kept('data', undefined, received(nothing))])
        throw error
      }
      return answerOf(201)
    },
    'POST mCreate': (call, sent, request) => {
      const ofDocuments = Map.groupBy(componentsOf(request, sent), ({ docId }) => docId ?? '')
      if (ofDocuments.has('')) throw new Refusal(400, 'a part has no X-docId')
      let status = 201
      const lines = [...ofDocuments].map(([docId, components]) => {
        try {
          create(call, components, docId)
          return `docId="${docId}";retCode="201";\r\n`
        } catch (error) {
          status = 250
          const { status: retCode, message } = error as Refusal
          return `docId="${docId}";retCode="${retCode}";errorDescription="${message}";\r\n`
        }
      })
      return asciiAnswer(lines.join(''), status)
    },
    'PUT update': (call, sent, request) => {
      const document = find(call)
      const compId = call.need('compId')
      const old = document.components.find((other) => other.compId === compId)
      const next = kept(compId, request.headers['content-type'] || old?.contentType, sent, old?.created)
      if (faults.has('update_drops_others')) return change(document, [next])
      const others = document.components.map((other) => (other === old ? next : other))
      return change(document, old ? others : [...others, next])
    },
    'POST update': (call, sent, request) => change(find(call), componentsOf(request, sent)),
    'PUT append': (call, { body }) => {
      const document = find(call)
      const found = component(document, call.need('compId'))
      const whole = received(faults.has('append_replaces') ? body : Buffer.concat([found.body, body]))
      Object.assign(found, { ...whole, modified: new Date() })
      return change(document, document.components)
    },
    'GET delete': (call) => {
      const document = find(call)
      const compId = call.get('compId')
      const gone = compId === undefined ? undefined : component(document, compId)
      if (faults.has('keeps_deleted')) return answerOf(200)
      if (faults.has('refuses_delete')) throw new Refusal(409, 'document is locked')
      if (gone)
        return change(
          document,
          document.components.filter((other) => other !== gone),
        )
      documents.delete(keyOf(call.need('contRep'), call.need('docId')))
      return answerOf(200)
    },
    'GET info': (call) => {
      const document = find(call)
      if (call.get('resultAs') === 'html') {
        const items = document.components.map(({ compId, body }) => `<li>${encodeURIComponent(compId)}: ${body.length} bytes</li>`)
        return answerOf(200, `<html><ul>${items.join('')}</ul></html>`, { 'Content-Type': 'text/html' })
      }
      const compId = call.get('compId')
      return multipart(call, document, compId === undefined ? document.components : [component(document, compId)], false)
    },
    'GET get': (call) => {
      const found = component(find(call), call.get('compId'))
      const isRange = call.get('fromOffset') !== undefined || call.get('toOffset') !== undefined
      const [from, to] = faults.has('ignores_range') ? [0, -1] : [call.number('fromOffset', 0), call.number('toOffset', -1)]
      const end = to === -1 ? found.body.length : to + (faults.has('range_excludes_end') ? 0 : 1)
      const body = damaged(found.body).subarray(from, Math.max(from, end))
      const headers = Object.fromEntries(partHeadersOf(found, body.length))
      return { status: isRange && faults.has('range_is_206') ? 206 : 200, headers, body }
    },
    'GET docGet': (call) => {
      const document = find(call)
      return multipart(call, document, faults.has('loses_component') ? document.components.slice(0, -1) : document.components, true)
    },
    'GET search': (call) => {
      const { body } = component(find(call), call.need('compId'))
      call.need('pattern')
      const offsets = offsetsOf(body, call.bytes('pattern'), call).map((offset) => offset + (faults.has('search_offset') ? 1 : 0))
      return asciiAnswer(`${[offsets.length, ...offsets].join(';')};`)
    },
    'GET attrSearch': (call) => {
      call.need('pattern')
      const entries = entriesOf(component(find(call), 'descr').body, call)
      return asciiAnswer(`${[entries.length, ...entries.flat()].join(';')};`)
    },
  }

  const answer = async (request: IncomingMessage, sent: Received): Promise<Answer> => {
    const { url = '' } = request
    const call = parseCall(url, faults)
    const method = request.method === 'HEAD' || (request.method === 'DELETE' && call.command === 'delete') ? 'GET' : request.method
    requests.push([call.command, call.get('docId'), call.get('compId')].filter(Boolean).join(' '))
    if (faults.has('fails')) throw new Refusal(500, 'internal error')
    const serve = commands[`${method} ${call.command}`]
    if (!serve) throw new Refusal(400, 'unknown function')
    if (call.command !== 'serverInfo') {
      if (!pVersions.has(call.need('pVersion'))) throw new Refusal(400, 'unknown pVersion')
      if (!repositories.includes(call.need('contRep'))) throw new Refusal(404, 'repository not found')
    }
    if (isSigned && !(faults.has('accepts_unsigned') && call.get('secKey') === undefined)) {
      const active = certificates.filter((one) => one.isActive && one.contRep === call.get('contRep') && one.authId === call.get('authId'))
      await signature.check(
        call,
        active.map(({ pem }) => pem),
        {
          signature: faults.has('accepts_any_signature'),
          expiration: faults.has('accepts_expired'),
          accessMode: faults.has('ignores_access_mode'),
        },
      )
    }
    try {
      return await serve(call, sent, request)
    } catch (error) {
      const isUnknown = error instanceof Refusal && error.status === 404 && reads.has(call.command)
      if (isUnknown && faults.has('unknown_is_200')) return answerOf(200)
      throw error
    }
  }

  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    const hash = createHash('sha256')
    let sizeBytes = 0
    for await (const chunk of request as AsyncIterable<Buffer>) {
      if (sizeBytes < keptMaxBytes) chunks.push(chunk)
      sizeBytes += chunk.length
      hash.update(chunk)
    }
    if (faults.has('never_answers')) return
    await timing.beforeAnswer?.(request.url ?? '')
    if (faults.has('slow')) await sleep(timing.slowMs, undefined, { ref: false })
    const { status, headers, body } = await answer(request, { body: Buffer.concat(chunks), sizeBytes, sha256: hash.digest('hex') }).catch(
      (error: unknown) => {
        const refusal = error instanceof Refusal ? error : new Refusal(500, String(error))
        const { headers: plain, body: line, status: code } = asciiAnswer(`${refusal.message}\r\n`, refusal.status)
        const described = faults.has('no_error_description') ? {} : { 'X-ErrorDescription': refusal.message }
        return { status: code, headers: { ...plain, ...described }, body: line }
      },
    )
    // A header is a line of bytes, which Node.js takes as ISO 8859-1.
    const bytesOf = (value: string | number) => Buffer.from(String(value)).toString('latin1')
    const written = Object.entries(headers).map(([name, value]) => [name, bytesOf(value)])
    response.writeHead(status, reasons[status] ?? '', { ...Object.fromEntries(written), 'Content-Length': body.length })
    const isContent = status === 200 && /\?(?:get|docGet)&/.test(request.url ?? '') && request.method === 'GET'
    const cut = isContent && (faults.has('closes_midway') || faults.has('stops_midway'))
    if (!cut) return void response.end(request.method === 'HEAD' ? undefined : body)
    response.write(body.subarray(0, Math.floor(body.length / 2)))
    if (faults.has('closes_midway')) response.socket?.end()
  }

  const server = createServer((request, response) => void respond(request, response).catch(() => request.socket.destroy()))
  server.listen(wantedPort, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    await signature.close()
  }
  return {
    port,
    /** The address that an administrator enters for the HTTP script. */
    url: `http://127.0.0.1:${port}/ContentServer/ContentServer.dll`,
    /** The faults that it has at the moment. */
    faults,
    timing,
    /** The documents, by `contRep/docId`. A test may change them. */
    documents,
    /** What putCert has brought. Activate one by `isActive`. */
    certificates,
    /** Every request so far, as `command docId compId`. */
    requests,
    /** Stores a document without a request, at one moment. */
    put: (
      docId: string,
      contents: Record<string, string | Buffer>,
      { contRep = 'Z1', contentType = 'application/pdf', date = new Date() } = {},
    ) => {
      const components = Object.entries(contents).map(([compId, body]) => ({
        compId,
        contentType,
        ...received(Buffer.from(body)),
        created: date,
        modified: date,
      }))
      documents.set(keyOf(contRep, docId), { created: date, modified: date, components })
    },
    /** Trusts a certificate, as an administrator does who activates it. */
    trust: (pem: string, authId: string, contRep = 'Z1') => void certificates.push({ contRep, authId, pem, isActive: true }),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
