import { once } from 'node:events'
// Contract double of a source system's /sap/bc/soap/rfc on a real socket, written from the documented requests and answers, because no such
// system can be run for tests. It drops tables that a call does not name, and answers faults with status 500 and BAPI messages with 200.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { XMLParser } from 'fast-xml-parser'

interface ReceivedCall {
  url: string
  headers: IncomingMessage['headers']
  /** The body as it was received. */
  xml: string
  functionName: string
  /** Keyed by element name; tables are arrays of rows. */
  parameters: Record<string, unknown>
}

interface Reply {
  status?: number
  contentType?: string
  body: string | Buffer
  delayMs?: number
}

type RfcFunction = (parameters: Record<string, unknown>) => Reply

const soap = 'http://schemas.xmlsoap.org/soap/envelope/'
const envelope = (body: string) =>
  `<?xml version="1.0" encoding="utf-8"?>\n<SOAP-ENV:Envelope xmlns:SOAP-ENV="${soap}">\n <SOAP-ENV:Body>\n${body}\n </SOAP-ENV:Body>\n</SOAP-ENV:Envelope>`

/** Returns the answer of a function: XML of its exporting and changing parameters, and of those tables that the call names. */
export const result = (
  functionName: string,
  called: Record<string, unknown>,
  parameters: string,
  tables: Record<string, string> = {},
): Reply => {
  const named = Object.entries(tables).filter(([name]) => name in called)
  const xml = named.map(([name, rows]) => `<${name}>${rows}</${name}>`).join('\n  ')
  return {
    body: envelope(
      `<rfc:${functionName}.Response xmlns:rfc="urn:sap-com:document:sap:rfc:functions">\n  ${parameters}\n  ${xml}\n</rfc:${functionName}.Response>`,
    ),
  }
}

export const fault = (faultstring: string, detail = ''): Reply => ({
  status: 500,
  body: envelope(
    `<SOAP-ENV:Fault><faultcode>SOAP-ENV:Client</faultcode><faultstring>${faultstring}</faultstring><detail>${detail}</detail></SOAP-ENV:Fault>`,
  ),
})

/** Returns a fault in the other documented format. */
export const exception = (functionName: string, name: string, message: string): Reply => ({
  body: envelope(
    `<rfc:${functionName}.Exception xmlns:rfc="urn:sap-com:document:sap:rfc:functions"><Name>${name}</Name><Message><ID>OA</ID><Number>312</Number><Text>${message}</Text></Message></rfc:${functionName}.Exception>`,
  ),
})

const parser = new XMLParser({ removeNSPrefix: true, parseTagValue: false, trimValues: false, isArray: (name) => name === 'item' })

export const startRfcSystem = async (functions: Record<string, RfcFunction>, logon = { user: 'RELAY', password: 'canary-rfc' }) => {
  const calls: ReceivedCall[] = []
  const expected = `Basic ${Buffer.from(`${logon.user}:${logon.password}`).toString('base64')}`

  const answerTo = async (request: IncomingMessage): Promise<Reply> => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const xml = Buffer.concat(chunks).toString('utf8')
    if (!request.url?.startsWith('/sap/bc/soap/rfc')) return { status: 404, contentType: 'text/html', body: '<html>no service</html>' }
    if (request.headers.authorization !== expected) return { status: 401, contentType: 'text/html', body: '<html>Logon failed</html>' }
    const body = parser.parse(xml)?.Envelope?.Body as Record<string, Record<string, unknown>> | undefined
    const [functionName = '', parameters = {}] = Object.entries(body ?? {})[0] ?? []
    const called = typeof parameters === 'object' ? parameters : {}
    calls.push({ url: request.url, headers: request.headers, xml, functionName, parameters: called })
    return functions[functionName]?.(called) ?? fault(`Function ${functionName} not found`)
  }

  const send = async (request: IncomingMessage, response: ServerResponse) => {
    const { status = 200, contentType = 'text/xml; charset=utf-8', body, delayMs = 0 } = await answerTo(request)
    setTimeout(() => response.writeHead(status, { 'content-type': contentType }).end(body), delayMs).unref()
  }

  const server = createServer((request, response) => void send(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    logon,
    calls,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
