import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { unwrap, type RelayClient } from '../../../clients/typescript/src/index.ts'

/** Starts a web server that answers every request with 404, so that an operator is needed. */
const startRefusingSink = async () => {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.statusCode = 404
      response.end('{"error":"There is no inbox for company code 2000"}\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/inbox/2000`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const idOf = async (answer: Promise<{ data?: { data: { id: string } }; error?: unknown; response: Response }>): Promise<string> =>
  (await unwrap(answer)).data.id

interface SampleDeps {
  api: RelayClient
  /** Address of the receiver of the workspace. */
  receiver: string
  archiveId: string
  requestTimeoutMs: number
}

// Nothing listens here: deliveries are retried. The port is reserved for the discard service, which has disappeared.
const closedPort = 9

/**
 * Adds what a relay in operation has: documents that were delivered, failed, are retried and are held, to several kinds of destinations.
 * All of it happens, nothing is only written to the database.
 */
export const addSampleData = async ({ api, receiver, archiveId, requestTimeoutMs }: SampleDeps): Promise<{ stop(): Promise<void> }> => {
  const refusing = await startRefusingSink()
  const approval = await idOf(
    api.POST('/destinations', { body: { name: 'Approval', connector_type: 'webhook', config: { url: refusing.url }, credentials: {} } }),
  )
  const taxArchive = await idOf(
    api.POST('/destinations', {
      body: {
        name: 'Tax archive',
        connector_type: 'objstore',
        config: { bucket: 'tax-archive', region: 'eu-central-1', endpoint: `http://127.0.0.1:${closedPort}`, path_style: true },
        credentials: { access_key_id: 'demo', secret_access_key: randomBytes(20).toString('hex') },
      },
    }),
  )
  const mailRoom = await idOf(
    api.POST('/destinations', {
      body: {
        name: 'Mail room',
        connector_type: 'email',
        config: { host: '127.0.0.1', port: closedPort, from: 'relay@acme.example', to: ['mail-room@acme.example'] },
        credentials: {},
      },
    }),
  )
  const repository = (repoId: string, name: string) => idOf(api.POST('/repositories', { body: { repo_id: repoId, name } }))
  const orders = await repository('Z2', 'Purchase orders')
  const payslips = await repository('Z3', 'Payslips')
  const notes = await repository('Z4', 'Delivery notes')
  const connect = (name: string, repositoryId: string, destinationIds: string[], isActive = true) =>
    idOf(api.POST('/connections', { body: { name, repository_ids: [repositoryId], destination_ids: destinationIds, is_active: isActive } }))
  await connect('Orders to archive and approval', orders, [archiveId, approval])
  await connect('Payslips to the tax archive', payslips, [archiveId, taxArchive])
  await connect('Delivery notes to the archive', notes, [archiveId])
  await connect('Delivery notes to the mail room (paused)', notes, [mailRoom], false)

  const send = async (repoId: string, objectType: string, objectId: string) => {
    const docId = randomBytes(16).toString('hex').toUpperCase()
    const response = await fetch(`${receiver}?create&pVersion=0045&contRep=${repoId}&docId=${docId}&compId=data`, {
      method: 'PUT',
      headers: { 'content-type': 'application/pdf', 'x-relay-object-type': objectType, 'x-relay-object-id': objectId },
      body: new Uint8Array(invoicePdf(objectId)),
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    if (response.status !== 201) throw new Error(response.headers.get('x-errordescription') ?? 'The receiver refused a document')
  }
  for (let number = 1; number <= 6; number += 1) {
    await send('Z1', 'BKPF', `1000190000${4705 + number}2026`)
    if (number <= 3) await send('Z2', 'BUS2012', `45000000${String(number).padStart(2, '0')}`)
    if (number <= 2) await send('Z3', 'PREL', `0000100${number}`)
    if (number <= 4) await send('Z4', 'LIKP', `80000000${String(number).padStart(2, '0')}`)
  }
  return { stop: refusing.stop }
}

const lines = ['Acme Trading Ltd.', 'Invoice 1900000001', '', 'One document relay, installed       1,000.00 EUR', 'Due within 30 days']

const escaped = (text: string) => text.replaceAll(/[\\()]/g, String.raw`\$&`)

/** Creates a one-page PDF 1.4 (ISO 32000, with a classic cross-reference table) without a library. */
export const invoicePdf = (number: string): Buffer => {
  const text = [...lines, `Reference ${number}`].map((line) => `(${escaped(line)}) Tj T*`).join('\n')
  const stream = `BT /F1 14 Tf 72 760 Td 22 TL\n${text}\nET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let body = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = body.length
    body += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  return Buffer.from(`${body}${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF\n`, 'latin1')
}
