import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

// A stand-in for SAP, written from the documented requests and answers of /sap/bc/soap/rfc. It is no SAP system: it knows two functions, and
// every invoice is from the same vendor.

// SAP links a document after it has stored it. The relay asks at once, after a second, and two seconds later.
const linkDelayMs = 1_500

const answerOf = (name: string, content: string) =>
  `<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/"><SOAP-ENV:Body>` +
  `<rfc:${name}.Response xmlns:rfc="urn:sap-com:document:sap:rfc:functions">${content}</rfc:${name}.Response></SOAP-ENV:Body></SOAP-ENV:Envelope>`

/** Starts a source system that links each document to an invoice some time after it was first asked about it. */
export const startSourceSystem = async () => {
  const credentials = { user: 'RELAY', password: randomBytes(12).toString('hex') }
  const expected = `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')}`
  /** When each document was first asked about, and the number of its invoice. */
  const documents = new Map<string, { askedAt: number; invoice: string }>()

  const connections = (request: string): string => {
    const docId = /<ARC_DOC_ID>([^<]*)</.exec(request)?.[1] ?? ''
    const known = documents.get(docId) ?? { askedAt: performance.now(), invoice: String(5_105_600_101 + documents.size) }
    documents.set(docId, known)
    const isLinked = performance.now() - known.askedAt >= linkDelayMs
    const row = `<item><SAP_OBJECT>RMRP</SAP_OBJECT><OBJECT_ID>${known.invoice}2026</OBJECT_ID><AR_OBJECT>MMILOGINV</AR_OBJECT></item>`
    return answerOf('ARCHIV_GET_CONNECTIONS', `<COUNT>${isLinked ? 1 : 0}</COUNT><CONNECTIONS>${isLinked ? row : ''}</CONNECTIONS>`)
  }
  const invoice = () =>
    answerOf(
      'BAPI_INCOMINGINVOICE_GETDETAIL',
      '<HEADERDATA><COMP_CODE>1000</COMP_CODE><DIFF_INV>0000017300</DIFF_INV><GROSS_AMOUNT>1190.0000</GROSS_AMOUNT><CURRENCY>EUR</CURRENCY></HEADERDATA>',
    )

  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.headers.authorization !== expected) {
        response.writeHead(401).end()
        return
      }
      const answer = body.includes('ARCHIV_GET_CONNECTIONS') ? connections(body) : invoice()
      response.writeHead(200, { 'content-type': 'text/xml; charset=utf-8' }).end(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials,
    functions: ['ARCHIV_GET_CONNECTIONS', 'BAPI_INCOMINGINVOICE_GETDETAIL'],
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
