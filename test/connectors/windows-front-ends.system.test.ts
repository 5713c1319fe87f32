// The story of an office: what an SAP system with Windows front ends stores arrives under names that people can open, and is found by what they see.
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3'
import { pdfWith, zugferd1 } from '../enrichment/invoices.ts'
import { createFolder } from '../support/folder.ts'
import { startRelay, until } from '../support/relay.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { startMailServer } from '../support/smtp-server.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'

const env = share(await createTimeSkippingTemporal())
const folder = share(await createFolder())
const s3 = share(await startS3Server())
const mail = share(await startMailServer({ authOptional: true, hideSTARTTLS: true }))
const relay = share(await startRelay(env, { RELAY_DIRECTORY_ROOTS: folder.path }))

const office = 'application/vnd.openxmlformats-officedocument'
const zip = (content: string) => Buffer.concat([Buffer.from('PK\u0003\u0004'), Buffer.from(content)])

/** What is stored, and the name that it has for people. The name of a component is percent-encoded, as the front end does it. */
const stored = {
  // The document management of SAP: the component is the file. The bytes are those of Windows-1252.
  SLIDES: {
    compId: 'Pr%E4sentation%20%96%20B%FCro.pptx',
    type: `${office}.presentationml.presentation`,
    body: zip('slides'),
    name: 'Präsentation – Büro.pptx',
  },
  // ArchiveLink: the component is `data`, and a program tells the name before the document arrives.
  SHEET: { compId: 'data', type: `${office}.spreadsheetml.sheet; charset=`, body: zip('sheet'), name: 'Umsätze März.xlsx' },
  // A scan without a name.
  SCAN: {
    compId: 'data',
    type: 'application/pdf; charset=; version=1.7',
    body: pdfWith(Buffer.from(zugferd1), { name: 'ZUGFeRD-invoice.xml' }),
    name: 'data.pdf',
  },
}
const docIds = Object.keys(stored) as (keyof typeof stored)[]
/** Two components of a document may have one name, so the folder of a file is the component. */
const pathOf = (docId: keyof typeof stored) => {
  const { compId, name } = stored[docId]
  return `${docId}/${compId === 'data' ? compId : name}/${name}`
}
const bytes = Object.fromEntries(docIds.map((docId) => [pathOf(docId), stored[docId].body.toString('base64')]))

const filesBelow = async (root: string): Promise<Record<string, string>> => {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(await Promise.all(files.map(async (path) => [relative(root, path), await readFile(path, 'base64')])))
}

const objectsOf = async (): Promise<Record<string, string>> => {
  const { Contents: contents = [] } = await s3.client.send(new ListObjectsV2Command({ Bucket: s3.bucket }))
  const read = async (key: string) => {
    const { Body: body } = await s3.client.send(new GetObjectCommand({ Bucket: s3.bucket, Key: key }))
    return Buffer.from(await body!.transformToByteArray()).toString('base64')
  }
  return Object.fromEntries(await Promise.all(contents.map(async ({ Key: key }) => [key, await read(key!)])))
}

test('documents of Windows front ends arrive in a folder, in S3 and by mail under names that people can open, and are found', async () => {
  const { endpoint, bucket, accessKeyId, secretAccessKey } = s3
  await relay.run(async ({ api, createRoutes }) => {
    const { call, repositoryId, workspaceSlug } = await createRoutes(
      [
        { name: 'Folder', connector: 'directory', config: { path: folder.path } },
        {
          name: 'Bucket',
          connector: 'objstore',
          config: { endpoint, bucket, region: 'us-east-1' },
          credentials: { access_key_id: accessKeyId, secret_access_key: secretAccessKey },
        },
        {
          name: 'Mailbox',
          connector: 'email',
          config: { host: '127.0.0.1', port: mail.port, tls: 'none', from: 'relay@acme.example', to: 'office@acme.example' },
        },
      ],
      { settings: { path_template: '{doc_id}/{comp_id}/{file_name}' } },
    )
    const enrichment = { name: 'Invoices', repository_ids: [repositoryId], steps: [{ kind: 'e_invoice' }] }
    expect((await call('POST', '/enrichments', enrichment)).status).toBe(201)
    const told = await call('PUT', '/documents/by-doc-id/Z1/SHEET/metadata', { file_name: stored.SHEET.name })
    expect(told.json.data).toMatchObject({ documents: 0 })

    const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
    for (const docId of docIds) {
      const { body, compId, type } = stored[docId]
      expect((await source.create(docId, body, { compId, headers: { 'content-type': type } })).status).toBe(201)
    }
    // The source system finds the component by the bytes that it has sent.
    expect((await source.get('SLIDES', `&compId=${stored.SLIDES.compId}`)).body).toEqual(stored.SLIDES.body)
    await source.close()
    interface Listed {
      id: string
      attributes: { doc_id: string; file_name: string | null }
    }
    const list = async (query: string): Promise<Listed[]> => (await call('GET', `/documents/search?${query}`)).json.data
    await until(env, 'everything has arrived', async () => (await list('status=delivered')).length === docIds.length, 1_000)

    expect(await filesBelow(folder.path)).toEqual(bytes)
    expect(await objectsOf()).toEqual(bytes)
    const attachments = mail.mails.flatMap(({ parsed }) => parsed.attachments)
    expect(
      Object.fromEntries(attachments.map(({ filename, content }) => [filename, Buffer.from(content as ArrayBuffer).toString('base64')])),
    ).toEqual(Object.fromEntries(docIds.map((docId) => [stored[docId].name, stored[docId].body.toString('base64')])))

    const [scan] = await list('doc_id=SCAN')
    expect((await call('GET', `/documents/${scan!.id}`)).json.data.attributes.fields).toMatchObject({
      invoice_number: 'ZF-2014',
      seller: 'Beispiel AG',
      total: '59.50',
      currency: 'EUR',
    })
    const found = async (text: string) => (await list(`q=${encodeURIComponent(text)}`)).map(({ attributes }) => attributes.doc_id)
    expect({
      slides: await found('Präsentation – Büro.pptx'),
      sheet: await found('Umsätze März'),
      number: await found('ZF-2014'),
      seller: await found('Beispiel AG'),
    }).toEqual({ slides: ['SLIDES'], sheet: ['SHEET'], number: ['SCAN'], seller: ['SCAN'] })
  })
})
