import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

// A stand-in for SAP, written from the documented requests and answers of /sap/bc/soap/rfc and of an OData service. It is no SAP system: it knows
// two functions and one service, and answers for the invoices that it has, as SAP does.

// SAP links a document after it has stored it. The relay asks at once, after a second, and two seconds later.
const linkDelayMs = 1_500

/** The path of the items of accounting documents. */
const itemsPath = '/sap/opu/odata/sap/API_OPLACCTGDOCITEMCUBE_SRV/A_OperationalAcctgDocItemCube'
const fiscalYear = '2026'

const answerOf = (name: string, content: string) =>
  `<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/"><SOAP-ENV:Body>` +
  `<rfc:${name}.Response xmlns:rfc="urn:sap-com:document:sap:rfc:functions">${content}</rfc:${name}.Response></SOAP-ENV:Body></SOAP-ENV:Envelope>`

const parameterOf = (request: string, name: string): string => new RegExp(`<${name}>([^<]*)<`).exec(request)?.[1] ?? ''

/** The invoices of Materials Management, each of which begins to exist with its document. */
const createLogisticsInvoices = () => {
  /** When each document was first asked about, and the number of its invoice. */
  const documents = new Map<string, { askedAt: number; invoice: string }>()
  return {
    connections: (request: string): string => {
      const docId = parameterOf(request, 'ARC_DOC_ID')
      const known = documents.get(docId) ?? { askedAt: performance.now(), invoice: String(5_105_600_101 + documents.size) }
      documents.set(docId, known)
      const isLinked = performance.now() - known.askedAt >= linkDelayMs
      const row = `<item><SAP_OBJECT>RMRP</SAP_OBJECT><OBJECT_ID>${known.invoice}${fiscalYear}</OBJECT_ID><AR_OBJECT>MMILOGINV</AR_OBJECT></item>`
      return answerOf('ARCHIV_GET_CONNECTIONS', `<COUNT>${isLinked ? 1 : 0}</COUNT><CONNECTIONS>${isLinked ? row : ''}</CONNECTIONS>`)
    },
    detail: (request: string): string => {
      const number = parameterOf(request, 'INVOICEDOCNUMBER')
      const isKnown = parameterOf(request, 'FISCALYEAR') === fiscalYear && [...documents.values()].some(({ invoice }) => invoice === number)
      const header = isKnown
        ? '<COMP_CODE>1000</COMP_CODE><DIFF_INV>0000017300</DIFF_INV><GROSS_AMOUNT>1190.0000</GROSS_AMOUNT><CURRENCY>EUR</CURRENCY>'
        : '<COMP_CODE/><DIFF_INV/><GROSS_AMOUNT>0.0000</GROSS_AMOUNT><CURRENCY/>'
      const missing = '<item><TYPE>E</TYPE><ID>M8</ID><NUMBER>308</NUMBER><MESSAGE>The invoice document does not exist</MESSAGE></item>'
      const content = `<HEADERDATA>${header}</HEADERDATA><RETURN>${isKnown ? '' : missing}</RETURN>`
      return answerOf('BAPI_INCOMINGINVOICE_GETDETAIL', content)
    },
  }
}

/** Returns the items of an invoice of Financial Accounting: of company code 1000, with the numbers 1900000000 to 1900009999. */
const itemsOf = (filter: string): object[] => {
  const [, company, number, year] =
    /^CompanyCode eq '(\d+)' and AccountingDocument eq '(\d+)' and FiscalYear eq '(\d+)'$/.exec(filter) ?? []
  if (company !== '1000' || year !== fiscalYear || !/^190000\d{4}$/.test(number ?? '')) return []
  return [{ Supplier: '17300', AmountInTransactionCurrency: '1000.00', TransactionCurrency: 'EUR' }]
}

/** Starts a source system that links each document to an invoice some time after it was first asked about it. */
export const startSourceSystem = async () => {
  const credentials = { user: 'RELAY', password: randomBytes(12).toString('hex') }
  const expected = `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')}`
  const logistics = createLogisticsInvoices()

  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.headers.authorization !== expected) {
        response.writeHead(401).end()
        return
      }
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
      if (pathname === itemsPath) {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ d: { results: itemsOf(searchParams.get('$filter') ?? '') } }))
        return
      }
      const answer = body.includes('ARCHIV_GET_CONNECTIONS') ? logistics.connections(body) : logistics.detail(body)
      response.writeHead(200, { 'content-type': 'text/xml; charset=utf-8' }).end(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials,
    itemsPath,
    functions: ['ARCHIV_GET_CONNECTIONS', 'BAPI_INCOMINGINVOICE_GETDETAIL'],
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
