// Schemas of an enrichment: in requests of the management API, and in the file of `relay apply`.
import { z } from 'zod'
import { checkSignIn, httpSignIn, httpSignIns, ownHeaders } from '../connectors/shared/http-sign-in.ts'
import { caCertificate, plainUrl } from '../connectors/shared/schema-fields.ts'
import { noSignIn, withSignIns } from '../connectors/shared/sign-in.ts'
import { lateDaysBounds, waitSecondsBounds } from '../domain/bounds.ts'
import { toCamelCase, toSnakeCase, type CamelCasedOutput } from '../domain/casing.ts'
import { enrichmentStatuses, type EnrichmentStatus } from '../domain/enrichment-states.ts'
import { documentPlaceholders, fieldTemplateIssue, isLinkField } from '../domain/field-template.ts'
import { fieldTypes } from '../domain/field-values.ts'
import { functionName } from '../domain/rfc-settings.ts'
import type { StepCondition } from '../domain/step-condition.ts'
import { name as displayName } from '../workspace/inputs.ts'
import { jsonPathIssue } from './json-path.ts'

// A document costs one call per step and try.
const stepsMax = 10
const fieldsMax = 50
const textMaxCharacters = 2_000
const objectTypesMax = 50
const objectTypeMaxCharacters = 40
const repositoriesMax = 1_000
// Each is the name of a header, and with its value a key that documents are found by.
const fieldNameMaxCharacters = 40

const identifier = z
  .string()
  .max(fieldNameMaxCharacters)
  .regex(/^[a-z][a-z0-9_]*$/, 'must consist of a-z, 0-9 and "_", and begin with a letter')

/** Names a part of an enrichment in the description of the API: a request may leave out what has a default, an answer has everything. */
const part = (name: string) => ({ id: `Enrichment${name}`, requestId: `Enrichment${name}Input` })

const field = z.strictObject({
  name: identifier.describe(
    'The name of the field: `vendor_name`. The names `erp_object_type`, `erp_object_id` and `ar_object` set the business object of the document.',
  ),
  path: z
    .string()
    .max(500)
    .superRefine((path, context) => {
      const message = jsonPathIssue(path)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
    .describe('Where the value is in the answer: a JSONPath (RFC 9535), of which the first value counts.'),
  type: z.enum(fieldTypes).meta({ id: 'FieldType' }).default('string').describe('A number or a date is stored in one form.'),
  optional: z.boolean().default(false).describe('If true, the enrichment is complete without this field.'),
})

const fields = z
  .array(field.meta(part('Field')))
  .max(fieldsMax)
  .describe('What is kept of the answer. Nothing else is.')
const text = z.string().max(textMaxCharacters)
const parameters = z.record(z.string(), z.unknown())
const stepName = identifier.describe('The name of the step, for operators.')

const objectTypes = (what: string) =>
  z
    .array(z.string().min(1).max(objectTypeMaxCharacters))
    .min(1)
    .max(objectTypesMax)
    .meta({ examples: [['BKPF', 'RMRP']] })
    .describe(`${what}, one of which the document must have, in upper or lower case.`)
    .optional()

const when = z
  .strictObject({
    erp_object_type: objectTypes('Types of business objects'),
    ar_object: objectTypes('Document types of the source system').meta({ examples: [['FIIINVOICE']] }),
    fields: z
      .array(identifier)
      .min(1)
      .max(fieldsMax)
      .meta({ examples: [['purchase_order']] })
      .describe('Fields of earlier steps, each of which must have a value.')
      .optional(),
  })
  .refine((conditions) => Object.keys(conditions).length > 0, 'must have a condition')
  .meta(part('When'))
  .optional()
  .describe(
    'The documents that the step is for, by conditions that must all be met. For other documents, it is skipped. Without it: all documents.',
  )

const linkStep = z.strictObject({
  kind: z.literal('link').describe('Finds the business object of the document, by the function `ARCHIV_GET_CONNECTIONS`.'),
  name: stepName.default('link'),
})
const rfcStep = z.strictObject({
  kind: z.literal('rfc').describe('Calls a function of the system in the workspace settings, which must allow it.'),
  name: stepName,
  when,
  function: functionName.describe('The function module.'),
  imports: parameters.default({}).describe('Importing parameters. Texts may contain placeholders.'),
  tables: z.record(z.string(), z.array(z.unknown())).default({}).describe('Tables. Name each table that the answer has to contain.'),
  fields,
})
const httpStep = z.strictObject({
  kind: z.literal('http').describe('Sends a request to `http.url`, for example to an OData service, and reads a JSON answer.'),
  name: stepName,
  when,
  method: z.enum(['GET', 'POST']).meta({ id: 'EnrichmentMethod' }).default('GET'),
  path: text
    .regex(/^\/([\x21-\x2e\x30-\x7e][\x21-\x7e]*)?$/, 'must begin with one slash, and consist of printable ASCII characters without spaces')
    .describe('Path and query below `http.url`. May contain placeholders.'),
  body: parameters.optional().describe('The JSON body of a `POST`. Texts may contain placeholders.'),
  fields,
})

const eInvoiceStep = z.strictObject({
  kind: z
    .literal('e_invoice')
    .describe(
      'Reads the document itself, if it is an electronic invoice (XRechnung, ZUGFeRD, Factur-X), and calls nothing. It gives the fields ' +
        '`invoice_number`, `seller`, `total`, `currency` and `profile`.',
    ),
  name: stepName.default('e_invoice'),
  when,
})

const step = z
  .discriminatedUnion('kind', [
    linkStep.meta(part('LinkStep')),
    rfcStep.meta(part('RfcStep')),
    httpStep.meta(part('HttpStep')),
    eInvoiceStep.meta(part('InvoiceStep')),
  ])
  .meta(part('Step'))
export type StepSettings = z.output<typeof step>
type FieldSettings = z.output<typeof field>
/** A field as it is read. `ofDocument`: its value was decoded here, see `toFieldValue`. */
export type ReadField = FieldSettings & { ofDocument?: true }

/** The step `link` as a call. The table has a row per business object, usually one. */
const linkCall = {
  kind: 'rfc',
  function: 'ARCHIV_GET_CONNECTIONS',
  imports: { ARCHIV_ID: '{repo_id}', ARC_DOC_ID: '{doc_id}' },
  tables: { CONNECTIONS: [] as unknown[] },
  fields: [
    { name: 'erp_object_type', path: '$.tables.CONNECTIONS[*].SAP_OBJECT', type: 'string', optional: false },
    { name: 'erp_object_id', path: '$.tables.CONNECTIONS[*].OBJECT_ID', type: 'string', optional: false },
    { name: 'ar_object', path: '$.tables.CONNECTIONS[*].AR_OBJECT', type: 'string', optional: true },
  ] as FieldSettings[],
} as const

const eInvoiceFields = ['invoice_number', 'seller', 'total', 'currency', 'profile'].map((name): ReadField => {
  // A document that is no electronic invoice has none of them, and its enrichment is complete all the same.
  return { name, path: `$.${name}`, type: name === 'total' ? 'number' : 'string', optional: true, ofDocument: true }
})

type WithoutCondition<Step> = Step extends unknown ? Omit<Step, 'when'> : never
export type CallStep =
  | WithoutCondition<Exclude<StepSettings, { kind: 'link' | 'e_invoice' }>>
  | { kind: 'e_invoice'; name: string; fields: ReadField[] }

export const conditionOf = (settings: StepSettings): StepCondition | undefined => (settings.kind === 'link' ? undefined : settings.when)

export const callOf = (settings: StepSettings): CallStep => {
  if (settings.kind === 'link') return { ...linkCall, name: settings.name, tables: { ...linkCall.tables } }
  return settings.kind === 'e_invoice' ? { kind: 'e_invoice', name: settings.name, fields: eInvoiceFields } : settings
}

/** Returns every text of a call that may contain placeholders, with its path in the step. */
export const textsOf = (call: CallStep): { path: string[]; text: string }[] => {
  const walk = (value: unknown, path: string[]): { path: string[]; text: string }[] => {
    if (typeof value === 'string') return [{ path, text: value }]
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([key, inner]) => walk(inner, [...path, key]))
  }
  if (call.kind === 'e_invoice') return []
  if (call.kind === 'rfc') return [...walk(call.imports, ['imports']), ...walk(call.tables, ['tables'])]
  return [...walk(call.path, ['path']), ...walk(call.body, ['body'])]
}

const reservedNames: readonly string[] = documentPlaceholders

/** A plausible enrichment, for documentation. */
const stepsExample: StepSettings[] = [
  { kind: 'link', name: 'link' },
  {
    kind: 'rfc',
    name: 'invoice',
    function: 'BAPI_INCOMINGINVOICE_GETDETAIL',
    imports: { INVOICEDOCNUMBER: '{erp_object_id[0:10]}', FISCALYEAR: '{erp_object_id[10:14]}' },
    tables: {},
    fields: [{ name: 'vendor', path: '$.exports.HEADERDATA.DIFF_INV', type: 'string', optional: false }],
  },
]

const steps = z
  .array(step)
  .min(1)
  .max(stepsMax)
  .superRefine((list, context) => {
    const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message })
    const known: string[] = [...documentPlaceholders]
    const names = new Set<string>()
    const given = new Set<string>()
    for (const [index, each] of list.entries()) {
      const call = callOf(each)
      if (names.has(each.name)) refuse([index, 'name'], 'is the name of a step before this one')
      names.add(each.name)
      if (call.fields.length === 0) refuse([index, 'fields'], 'must not be empty')
      if (call.kind === 'http' && call.method === 'GET' && call.body !== undefined) refuse([index, 'body'], 'needs the method POST')
      for (const [position, name] of (conditionOf(each)?.fields ?? []).entries()) {
        if (!given.has(name)) refuse([index, 'when', 'fields', position], 'is no field of an earlier step')
      }
      for (const { path, text: template } of textsOf(call)) {
        const issue = fieldTemplateIssue(template, known)
        if (issue !== undefined) refuse([index, ...path], issue)
      }
      for (const [position, { name }] of call.fields.entries()) {
        if (given.has(name)) refuse([index, 'fields', position, 'name'], 'is the name of a field before this one')
        else if (reservedNames.includes(name) && !isLinkField(name))
          refuse([index, 'fields', position, 'name'], 'names the document itself')
        given.add(name)
      }
      known.push(...call.fields.map(({ name }) => name).filter((name) => !isLinkField(name)))
    }
  })
  .describe('The calls, in order. A call may use the fields of those before it, and may be for some documents only.')
  .meta({ examples: [stepsExample] })

const httpExample = { url: 'https://erp.example.com:44300/sap/opu/odata/sap/API_SUPPLIERINVOICE_PROCESS_SRV', headers: {} }

const http = z.strictObject({
  url: plainUrl.describe('Scheme, host and port of the system, with an optional path: the steps of the kind `http` are sent below it.'),
  headers: ownHeaders.meta({ masked: true }).describe('Further headers of every request. A secret belongs into the credentials.'),
  ca_certificate: caCertificate,
})

/** Credentials of the system of `http`, as those of a webhook. */
export const enrichmentCredentials = withSignIns(z.strictObject(httpSignIn).superRefine(checkSignIn), [noSignIn, ...httpSignIns])

/** The values of an enrichment that people set. */
export const enrichmentValues = z.strictObject({
  name: displayName,
  repository_ids: z
    .array(z.string())
    .max(repositoriesMax)
    .describe(
      'The ids of the repositories whose documents are enriched. A repository may have several enrichments, which each have their own calls.',
    ),
  is_active: z.boolean().describe('An inactive enrichment makes no calls, and documents do not wait for it.').default(true),
  wait_seconds: z
    .int()
    .min(waitSecondsBounds.min)
    .max(waitSecondsBounds.max)
    .describe('Seconds for which the deliveries of a document wait for its enrichment. Then they start with what is known.')
    .default(60),
  late_days: z
    .int()
    .min(lateDaysBounds.min)
    .max(lateDaysBounds.max)
    .describe('Days for which the calls are repeated after that, until the enrichment is complete.')
    .default(7),
  http: http
    .meta(part('Http'))
    .nullable()
    .describe('The system of the steps of the kind `http`. Null: there is none.')
    .meta({ examples: [httpExample] })
    .default(null),
  steps,
})

export const newEnrichment = enrichmentValues.extend({
  credentials: z
    .record(z.string(), z.unknown())
    .meta({ masked: true })
    .optional()
    .describe('Write-only: how the relay signs in at `http.url`, as at a webhook. Another `url` or `ca_certificate` requires them again.'),
})

/** What the API shows of an enrichment, beside its id and times. */
export const enrichmentFields = enrichmentValues.extend({
  has_credentials: z.boolean().describe('Whether credentials are stored.'),
  is_failing: z
    .boolean()
    .describe('Whether its latest documents have no business data: no call was answered, or nothing was found until the end.'),
  documents: z
    .object(Object.fromEntries(enrichmentStatuses.map((status) => [status, z.int()])) as Record<EnrichmentStatus, z.ZodInt>)
    .meta({ id: 'EnrichmentCounts', description: 'The number of documents by the status of their enrichment.' }),
})

export type HttpSettings = CamelCasedOutput<typeof http>

/** Returns the system as the column `enrichments.http` has it. */
export const storedHttp = (settings: HttpSettings | null): z.output<typeof http> | null =>
  settings && (toSnakeCase(http, settings) as z.output<typeof http>)

/** Returns the system of the column `enrichments.http`. */
export const httpSettings = (stored: z.output<typeof http> | null): HttpSettings | null => stored && toCamelCase(http, stored)
