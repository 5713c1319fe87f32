import type { Schemas } from '../api.ts'
import type { Texts } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { requestFields, requestSchemas } from '../request-schemas.ts'
import { changed, signInPath } from '../schema-form.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { Credentials, credentialsPath, useCredentials } from '../ui/credentials.ts'
import { ObjectForm, type FormProps } from '../ui/object-form.ts'
import { useForm } from '../ui/use-form.ts'

const enrichmentsWords = inLanguage(enrichmentsCatalogue)

type Attributes = Schemas['Enrichment']['attributes']

/** What a new enrichment starts with: the link, and the vendor of an invoice of Materials Management. */
const start = {
  steps: [
    { kind: 'link' },
    {
      kind: 'rfc',
      name: 'invoice',
      function: 'BAPI_INCOMINGINVOICE_GETDETAIL',
      imports: { INVOICEDOCNUMBER: '{erp_object_id[0:10]}', FISCALYEAR: '{erp_object_id[10:14]}' },
      fields: [{ name: 'vendor', path: '$.exports.HEADERDATA.DIFF_INV' }],
    },
  ],
}

const hasHttp = (texts: Texts) => texts['http'] === 'true'

const storedCredentials = (attributes: Attributes | undefined) => {
  if (!attributes?.http) return 'new'
  return attributes.has_credentials ? 'some' : 'none'
}

/** Returns the fields of an enrichment without its credentials. */
export const enrichmentFields = () =>
  changed(requestFields('POST /enrichments'), { repository_ids: { input: 'checks' } }).filter(
    ({ path }) => !path.startsWith(`${credentialsPath}.`),
  )

interface Props extends FormProps<Attributes> {
  repositories: readonly Schemas['Repository'][]
}

export const EnrichmentForm = ({ stored, repositories, ...rest }: Props) => {
  const words = enrichmentsWords()
  const credentials = useCredentials(
    requestSchemas['POST /enrichments']!.properties![credentialsPath]!,
    storedCredentials(stored?.attributes),
  )
  const form = useForm({
    fields: [
      ...enrichmentFields(),
      ...credentials.fields.map((field) => ({ ...field, when: (texts: Texts) => hasHttp(texts) && field.when?.(texts) !== false })),
    ],
    stored: stored?.attributes,
    etag: stored?.etag,
    start,
    groups: [credentialsPath],
    wholes: ['http'],
    toBody: (values, texts) => (hasHttp(texts) ? credentials.toBody(values) : values),
  })
  const credentialsFields = hasHttp(form.texts) && html`<${Credentials} form=${form} kind="webhook" of=${credentials} />`
  return html`<${ObjectForm}
    form=${form}
    resource="enrichments"
    list="enrichments"
    words=${words}
    stored=${stored}
    more=${{
      repository_ids: {
        options: repositories.map(({ id, attributes }) => ({ value: id, label: attributes.repo_id, note: attributes.name })),
      },
      'http.ca_certificate': { after: credentialsFields },
      steps: { rows: 18 },
    }}
    has=${(path: string) => path !== signInPath && !path.startsWith(`${credentialsPath}.`)}
    during=${credentials.orAsk}
    ...${rest}
  />`
}
