import { z } from 'zod'
import { legalHoldScope } from '../archive/document-fields.ts'
import { scopeOf, subjectRule, type LegalHolds } from '../archive/legal-holds.ts'
import { isStorable } from '../base/text.ts'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import { metadataMaxCharacters } from '../domain/template.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf } from './schemas.ts'

const reasonMaxCharacters = 1_000

const reason = z
  .string()
  .max(reasonMaxCharacters)
  .regex(/\S/, 'must not be empty')
  .refine(isStorable)
  .describe('Why, for the audit log: the proceedings or the audit, and who has asked for it.')
  .meta({ examples: ['Tax audit 2026'] })
const text = z.string().min(1).max(metadataMaxCharacters).refine(isStorable)

const legalHold = resource(
  'LegalHold',
  'legal_hold',
  z.object({
    scope: legalHoldScope,
    repo_id: z.string().nullable(),
    doc_id: z.string().nullable(),
    erp_object_type: z.string().nullable(),
    erp_object_id: z.string().nullable(),
    reason,
    documents: z
      .int()
      .meta({ examples: [2] })
      .describe('How many documents it applied to when it was set. 0 if none of the subject was there: is its name right?'),
    set_by: z
      .string()
      .nullable()
      .meta({ examples: ['Ada Park'] })
      .describe('The API key or the person that has set it. Null if it was set on the command line.'),
    created_at: timestamp,
  }),
)
const present = resourceOf('legal_hold')

const newHold = z
  .strictObject({
    repo_id: text.optional().describe('The repository, or that of the document.'),
    doc_id: text.optional().describe('The document, with all its components and versions.'),
    erp_object_type: text.optional().describe('The type of the business object, in upper or lower case.'),
    erp_object_id: text.optional().describe('Its key as documents have it, in upper or lower case, with or without leading zeros.'),
    reason,
  })
  .refine(
    ({ repo_id: repoId, doc_id: docId, erp_object_type: erpObjectType, erp_object_id: erpObjectId }) =>
      scopeOf({ repoId, docId, erpObjectType, erpObjectId }) !== undefined,
    subjectRule,
  )
  .meta({
    id: 'LegalHoldInput',
    examples: [{ erp_object_type: 'BKPF', erp_object_id: '100019000047112026', reason: 'Tax audit 2026' }],
  })

export const legalHoldEndpoints = ({ legalHolds }: { legalHolds: LegalHolds }): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/legal-holds',
    level: 'viewer',
    summary: 'List legal holds',
    description: 'Returns the holds that are set, newest first. The audit log has those that were lifted.',
    query: pageQuery,
    response: pageOfMany(legalHold),
    handle: async ({ query }, { workspaceId }) => toPage(await legalHolds.list(workspaceId, query), query, present),
  }),

  endpoint({
    method: 'POST',
    path: '/legal-holds',
    level: 'admin',
    audit: 'legal_hold.set',
    summary: 'Set a legal hold',
    description:
      'Puts a document (`repo_id` and `doc_id`), a repository (`repo_id`) or a business object (`erp_object_type` and `erp_object_id`) on hold, ' +
      'with the documents that arrive later. Until every hold on a document is lifted, retention and erasure leave it, and the source ' +
      'system cannot delete it. Deliveries go on. What was removed before does not come back.',
    body: newHold,
    response: one(legalHold),
    status: 201,
    handle: async ({ body }, { workspaceId, actor }) => ({
      data: present(await legalHolds.set(workspaceId, body, actorOf(actor))),
    }),
  }),

  endpoint({
    method: 'POST',
    path: '/legal-holds/:id/lift',
    operation: 'liftLegalHold',
    level: 'admin',
    audit: 'legal_hold.lifted',
    summary: 'Lift a legal hold',
    description: 'Ends a hold. From then on, the next run of retention removes what is past it.',
    params: idParams,
    body: z.strictObject({ reason }).meta({ id: 'LegalHoldLiftInput' }),
    response: one(legalHold),
    handle: async ({ params, body }, { workspaceId, actor }) => ({
      data: present(await legalHolds.lift(workspaceId, params.id, body.reason, actorOf(actor))),
    }),
  }),
]
