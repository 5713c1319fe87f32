import { z } from 'zod'
import { stepOutcome } from '../archive/document-fields.ts'
import type { Documents } from '../archive/document-list.ts'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import type { Enrichments } from '../enrichment/enrichments.ts'
import type { RunAgain } from '../enrichment/run-again.ts'
import { enrichmentFields, newEnrichment } from '../enrichment/settings.ts'
import type { TryEnrichment } from '../enrichment/try.ts'
import { resourceId } from '../http/filters.ts'
import { changeOf, configuredEndpoints } from './configured.ts'
import { presentSingle, singleDocument } from './document-resource.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { idParams, one, resource } from './schemas.ts'

const enrichment = resource('Enrichment', 'enrichment', enrichmentFields.extend({ created_at: timestamp, updated_at: timestamp }))

const triedStep = stepOutcome
  .extend({
    request: z
      .object({
        kind: z.enum(['rfc', 'http', 'e_invoice']).meta({ id: 'EnrichmentCallKind' }),
        function: z.string().optional(),
        imports: z.unknown().optional(),
        tables: z.unknown().optional(),
        method: z.string().optional(),
        url: z.string().optional(),
        body: z.string().optional(),
      })
      .meta({
        id: 'EnrichmentCall',
        examples: [
          {
            kind: 'rfc',
            function: 'ARCHIV_GET_CONNECTIONS',
            imports: { ARCHIV_ID: 'Z1', ARC_DOC_ID: 'DOC1' },
            tables: { CONNECTIONS: [] },
          },
        ],
      })
      .nullable()
      .describe('What was sent, without headers. Null if the step made no call.'),
    answer: z
      .string()
      .nullable()
      .describe('The answer, without secrets: at most its first 20,000 characters. Null if there was none.')
      .meta({ examples: ['{"exports":{"COUNT":"1"},"tables":{"CONNECTIONS":[{"SAP_OBJECT":"RMRP","OBJECT_ID":"51056001012026"}]}}'] }),
    answer_truncated: z.boolean().describe('Whether the answer is longer.'),
    fields: z
      .array(
        z
          .object({
            name: z.string(),
            value: z.string().nullable().describe('What the path finds in the answer. Null if it finds no value.'),
            problem: z.string().nullable().describe('Why there is no value.'),
          })
          .meta({ id: 'TriedField' }),
      )
      .describe('Each field of the step, if there was an answer.')
      .meta({ examples: [[{ name: 'erp_object_id', value: '51056001012026', problem: null }]] }),
  })
  .meta({ id: 'TriedStep' })
const tried = one(z.object({ steps: z.array(triedStep) }).meta({ id: 'EnrichmentTry' }))

interface EnrichmentDeps {
  enrichments: Enrichments
  documents: Pick<Documents, 'find'>
  tryEnrichment: TryEnrichment
  runAgain: RunAgain
}

export const enrichmentEndpoints = ({ enrichments, documents, tryEnrichment, runAgain }: EnrichmentDeps): Endpoint[] => {
  return [
    ...configuredEndpoints(
      {
        type: 'enrichment',
        id: 'Enrichment',
        singular: 'an enrichment',
        path: '/enrichments',
        resource: enrichment,
        input: newEnrichment,
        change: changeOf(newEnrichment),
        descriptions: {
          list: 'Returns the enrichments of the workspace in the order in which they were created.',
          create:
            'From then on, the documents that these repositories receive wait for their business data, for `wait_seconds` at most. ' +
            '`/docs/enrichments` of the relay has an enrichment for each common kind of document.',
          update:
            '`repository_ids`, `http`, `steps` and `credentials` replace the current values. A call under way uses the previous ones.',
          delete: 'Documents keep their fields. Deliveries that wait for the enrichment start.',
        },
      },
      { ...enrichments, versionOf: (row) => [...enrichments.versionOf(row), row.hasCredentials] },
    ),

    endpoint({
      method: 'POST',
      path: '/enrichments/:id/try',
      level: 'member',
      audit: 'enrichment.tried',
      summary: 'Try an enrichment on a document',
      description:
        'Makes the calls for a document of the workspace, and returns for each step what was sent, what came back and what each field finds. ' +
        'Stores nothing at the document. The enrichment need not serve its repository, nor be active. All calls together may take a minute.',
      params: idParams,
      body: z
        .strictObject({
          document_id: resourceId.describe('The document that the calls are made for.'),
        })
        .meta({ id: 'EnrichmentTryInput' }),
      response: tried,
      isTest: true,
      handle: async ({ params: { id }, body: { documentId } }, { workspaceId, actor, signal }) => ({
        data: { steps: await tryEnrichment({ workspaceId, id, documentId, actor: actorOf(actor) }, signal) },
      }),
    }),

    endpoint({
      method: 'POST',
      path: '/documents/:id/enrich',
      level: 'member',
      audit: 'document.enriched',
      summary: 'Fetch the business data of a document again',
      description:
        'Has the calls of the enrichments of its repository made again, in the background and from the first step. What was found stays until ' +
        'a call finds something else. Also for a document that arrived before there was an enrichment. Deliveries are not repeated.',
      params: idParams,
      response: one(singleDocument),
      conflict: 'The repository of the document has no active enrichment, or the content of the document is no longer kept.',
      status: 202,
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        await runAgain({ workspaceId, documentId: id, actor: actorOf(actor) })
        return { data: presentSingle(await documents.find(workspaceId, id)) }
      },
    }),
  ]
}
