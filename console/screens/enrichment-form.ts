import { lateDaysBounds, waitSecondsBounds } from '../../src/domain/bounds.ts'
import { callRaw, type Schemas } from '../api.ts'
import { fieldAt, newValues, type Texts, type Values } from '../form.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import * as formCatalogue from '../texts/form.ts'
import { FormField, Problems } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { useForm } from '../ui/use-form.ts'

const formWords = inLanguage(formCatalogue)
const enrichmentsWords = inLanguage(enrichmentsCatalogue)

type Attributes = Schemas['Enrichment']['attributes']

/** What a new enrichment starts with: the link, and the vendor of an invoice of Materials Management. */
const start = {
  wait_seconds: 60,
  late_days: 7,
  is_active: true,
  http: null,
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
const httpFields = [
  fieldAt('http', 'object'),
  fieldAt('http.url', 'text', { isRequired: true, when: hasHttp }),
  fieldAt('http.headers', 'pairs', { empty: {}, when: hasHttp }),
  fieldAt('http.ca_certificate', 'lines', { when: hasHttp }),
]
const fields = [
  fieldAt('name', 'text', { isRequired: true }),
  fieldAt('repository_ids', 'checks', { empty: [] }),
  fieldAt('wait_seconds', 'number', { isRequired: true, isInteger: true, minimum: waitSecondsBounds.min, maximum: waitSecondsBounds.max }),
  fieldAt('late_days', 'number', { isRequired: true, isInteger: true, minimum: lateDaysBounds.min, maximum: lateDaysBounds.max }),
  ...httpFields,
  fieldAt('credentials.username', 'text', { when: hasHttp }),
  fieldAt('credentials.password', 'text', { isSecret: true, when: hasHttp }),
  fieldAt('credentials.bearer_token', 'text', { isSecret: true, when: hasHttp }),
  fieldAt('steps', 'json', { isRequired: true }),
  fieldAt('is_active', 'switch'),
]

/** Makes the body of a change: the API replaces the system as a whole. */
const toBody = (values: Values, texts: Texts): Values =>
  values['http'] ? { ...values, http: newValues(httpFields, texts).values['http'] } : values

/** @param stored the enrichment to change, with the ETag of what is shown */
export const EnrichmentForm = ({
  stored,
  repositories,
  reload,
  onSaved,
}: {
  stored?: { id: string; attributes: Attributes; etag: string }
  repositories: readonly Schemas['Repository'][]
  reload: () => void
  onSaved: (id: string) => void
}) => {
  const words = enrichmentsWords()
  const { save: saveLabel, seconds, days } = formWords()
  const form = useForm({ fields, stored: stored?.attributes, start, groups: ['credentials'], toBody })

  const save = async (body: Values) => {
    const response = stored
      ? await callRaw('PATCH', `/enrichments/${stored.id}`, { body, headers: { 'if-match': stored.etag } })
      : await callRaw('POST', '/enrichments', { body: { repository_ids: [], ...body } })
    onSaved(((await response.json()) as Schemas['EnrichmentResponse']).data.id)
  }

  const wait = Number(form.texts['wait_seconds'])
  return html`<${FormCard}
    form=${form}
    action=${stored ? saveLabel : words.create}
    onSave=${save}
    reload=${reload}
    cancelTo=${stored ? undefined : 'enrichments'}
  >
    <${FormField} form=${form} path="name" label=${words.name} />
    <${FormField}
      form=${form}
      path="repository_ids"
      label=${words.repositories}
      hint=${words.repositoriesHint}
      options=${repositories.map(({ id, attributes }) => ({ value: id, label: attributes.repo_id, note: attributes.name }))}
    />
    <${FormField}
      form=${form}
      path="wait_seconds"
      label=${words.wait}
      hint=${words.waitHint}
      unit=${wait >= 60 ? `${seconds} = ${formatDuration(wait * 1_000, locale())}` : seconds}
    />
    <${FormField} form=${form} path="late_days" label=${words.late} hint=${words.lateHint} unit=${days} />
    <${FormField} form=${form} path="http" label=${words.http} />
    ${
      hasHttp(form.texts) &&
      html`<${FormField} form=${form} path="http.url" label=${words.url} hint=${words.urlHint} isMono />
        <${Problems} messages=${form.messagesOf('credentials')} />
        <${FormField} form=${form} path="credentials.username" label=${words.username} isMono />
        <${FormField} form=${form} path="credentials.password" label=${words.password} />
        <${FormField} form=${form} path="credentials.bearer_token" label=${words.token} hint=${words.credentialsHint} />
        <${FormField} form=${form} path="http.headers" label=${words.headers} hint=${words.headersHint} />
        <${FormField} form=${form} path="http.ca_certificate" label=${words.certificate} hint=${words.certificateHint} rows=${4} />`
    }
    <${FormField} form=${form} path="steps" label=${words.steps} hint=${words.stepsHint} rows=${18} />
    <${FormField} form=${form} path="is_active" label=${words.active} hint=${words.activeHint} />
  </${FormCard}>`
}
