import { z } from 'zod'
import { earlyDays, earlyMax } from '../archive/early-metadata.ts'
import type { MetadataChange, SetMetadata, SetMetadataOf } from '../archive/metadata.ts'
import { invalidRequest, validationFailed } from '../base/refusals.ts'
import { isPlainText, isStorable } from '../base/text.ts'
import { actorOf } from '../db/audit.ts'
import { lastPart } from '../domain/file-name.ts'
import { metadataMaxCharacters } from '../domain/template.ts'
import { metadata } from './document-resource.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { one } from './schemas.ts'

// What programs tell about documents, by the repo_id and the doc_id that the source system knows.

const plainValue = z
  .string()
  .min(1)
  .max(metadataMaxCharacters)
  .refine(isPlainText, 'must not contain line breaks, control characters, or characters that nobody sees')
const metadataValue = plainValue.nullable().optional()
const fileName = plainValue
  .refine((name) => lastPart(name) === name, 'must be the name of a file without folders, and without blanks around it')
  .nullable()
  .optional()

const change = {
  erp_object_type: metadataValue.describe('The type of the business object, for example `BKPF`. Null removes the value.'),
  erp_object_id: metadataValue.describe('The key of the business object. Null removes the value.'),
  ar_object: metadataValue.describe('The document type in the source system. Null removes the value.'),
  file_name: fileName.describe('The name of the file, without folders, for example `Offer 4711.docx`. Null removes the value.'),
  description: metadataValue.describe('A text about the document. Null removes the value.'),
}

const requireValue = (body: MetadataChange, path: PropertyKey[] = []): void => {
  if (Object.values(body).some((value) => value !== undefined)) return
  throw invalidRequest('body', [
    { code: 'custom', path, message: `must contain at least one of ${Object.keys(change).join(', ')}`, input: body },
  ])
}

// A path parameter that can be passed to PostgreSQL.
const storable = z.string().refine(isStorable)
const idsText = {
  repo: 'The repository identifier in the source system (`contRep`).',
  doc: 'The document identifier in the source system (`docId`).',
}
const documentParams = { repo_id: storable.describe(idsText.repo), doc_id: storable.describe(idsText.doc) }

const documentsCount = z
  .int()
  .describe(
    `The number of documents that were received under the \`doc_id\`. 0: the values are kept for ${earlyDays} days, until it arrives.`,
  )
const updated = z
  .object({
    repo_id: z.string(),
    doc_id: z.string(),
    documents: documentsCount,
    metadata,
    file_name: z.string().nullable(),
    description: z.string().nullable(),
  })
  .meta({ id: 'UpdatedMetadata' })

const present = (document: { repoId: string; docId: string }, { erpObjectType, erpObjectId, arObject, ...told }: SetMetadata) => ({
  ...document,
  ...told,
  metadata: { erpObjectType, erpObjectId, arObject },
})

const batchMax = 500
const entryExample = { repo_id: 'Z1', doc_id: '005056B5A3F21EEFA9C1D04F7B6E8C11', file_name: 'Invoice 5105600123.pdf' }

const conflict = `The workspace has told about more than ${earlyMax} documents that have not arrived.`

interface DocumentMetadataDeps {
  setMetadata: SetMetadataOf
  findUnknownRepositories(workspaceId: string, repoIds: string[]): Promise<Set<string>>
}

export const documentMetadataEndpoints = ({ setMetadata, findUnknownRepositories }: DocumentMetadataDeps): Endpoint[] => [
  endpoint({
    method: 'PUT',
    path: '/documents/by-doc-id/:repo_id/:doc_id/metadata',
    operation: 'setDocumentMetadata',
    level: 'member',
    audit: 'document.metadata_updated',
    summary: 'Set the metadata of a document',
    description:
      'Sets the values in the request on every document that was received under this `doc_id`. Omitted values are not changed. Deliveries that ' +
      'have not begun are planned again with them, and copies that were delivered before get them as late data. If no document has arrived, the ' +
      `values are kept for ${earlyDays} days, and the document gets them when it arrives.`,
    params: z.object(documentParams),
    body: z.strictObject(change).meta({ id: 'DocumentMetadataChange', minProperties: 1 }),
    response: one(updated),
    conflict,
    status: 200,
    handle: async ({ params, body }, { workspaceId, actor }) => {
      requireValue(body)
      return { data: present(params, await setMetadata(workspaceId, params, body, actorOf(actor), 'keep')) }
    },
  }),

  endpoint({
    method: 'PUT',
    path: '/documents/metadata',
    operation: 'setMetadataOfDocuments',
    level: 'member',
    audit: 'document.metadata_updated',
    summary: 'Set the metadata of several documents',
    description:
      'Does for each document what `PUT /documents/by-doc-id/{repo_id}/{doc_id}/metadata` does, one after the other. After an error, those before it ' +
      'are set: send the request again.',
    body: z
      .strictObject({
        documents: z
          .array(
            z
              .strictObject({
                repo_id: plainValue.describe(idsText.repo),
                doc_id: plainValue.describe(idsText.doc),
                ...change,
              })
              .meta({ id: 'DocumentMetadataEntry', minProperties: 3, examples: [entryExample] }),
          )
          .min(1)
          .max(batchMax)
          .describe('The documents, each with at least one value.'),
      })
      .meta({ id: 'DocumentMetadataBatch' }),
    response: z.object({ data: z.array(updated) }).meta({ id: 'UpdatedMetadataBatch' }),
    conflict,
    status: 200,
    handle: async ({ body: { documents } }, { workspaceId, actor }) => {
      for (const [index, { repoId: _, docId: __, ...values }] of documents.entries()) requireValue(values, ['documents', index])
      const unknown = await findUnknownRepositories(
        workspaceId,
        documents.map(({ repoId }) => repoId),
      )
      const details = documents.flatMap(({ repoId }, index) =>
        unknown.has(repoId) ? [{ path: `documents.${index}.repo_id`, message: 'there is no such repository in this workspace' }] : [],
      )
      if (details.length > 0) throw validationFailed(details)
      const data = []
      for (const { repoId, docId, ...values } of documents) {
        data.push(present({ repoId, docId }, await setMetadata(workspaceId, { repoId, docId }, values, actorOf(actor), 'keep')))
      }
      return { data }
    },
  }),
]
