import { useState } from 'preact/hooks'
import type { Schemas } from '../api.ts'
import { textsOf, type Texts } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { readyEnrichments } from '../ready-enrichments.ts'
import { requestFields, requestSchemas } from '../request-schemas.ts'
import { changed, signInPath } from '../schema-form.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { Credentials, credentialsPath, useCredentials } from '../ui/credentials.ts'
import { ObjectForm, type FormProps } from '../ui/object-form.ts'
import { useForm, type Form } from '../ui/use-form.ts'

type Attributes = Schemas['Enrichment']['attributes']

const firstReady = 'mm-invoice'

/** A choice of a ready enrichment. Its values replace those of the form, but for the repositories. */
const StartFrom = ({ form }: { form: Form }) => {
  const words = inLanguage(enrichmentsCatalogue)
  const [chosen, setChosen] = useState(firstReady)
  const choose = (name: string) => {
    setChosen(name)
    const texts = textsOf(enrichmentFields(), readyEnrichments[name])
    for (const path of startPaths) form.enter(path, texts[path]!)
  }
  return html`<div class="entry">
    <label for="start-from">${words.startFrom}</label>
    <select
      id="start-from"
      aria-describedby="start-from-help"
      value=${chosen}
      onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value)}
    >
      ${Object.entries(words.ready).map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
    </select>
    <div id="start-from-help" class="help"><p class="small">${words.startFromHint}</p></div>
  </div>`
}

/** What a ready enrichment says. */
const startPaths = ['name', 'wait_seconds', 'late_days', 'http', 'http.url', 'steps'] as const

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
  const words = inLanguage(enrichmentsCatalogue)
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
    start: readyEnrichments[firstReady]!,
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
    before=${stored ? undefined : html`<${StartFrom} form=${form} />`}
    ...${rest}
  />`
}
