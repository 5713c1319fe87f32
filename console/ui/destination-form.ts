import { useState } from 'preact/hooks'
import { call, callRaw, type Schemas } from '../api.ts'
import type { ConnectorType } from '../connector-types.ts'
import type { Values } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { navigate } from '../router.ts'
import { fieldsOf, signInPath, type SchemaField } from '../schema-form.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { ConnectorFields, Credentials, credentialsPath, useCredentials } from './credentials.ts'
import { FormField } from './fields.ts'
import { FormCard } from './form.ts'
import { announce } from './parts.ts'
import { TestResult } from './target-test.ts'
import { useForm } from './use-form.ts'

/** A destination that is edited, with the entity tag of the version that the form shows. */
interface Stored {
  id: string
  name: string
  config: Values
  /** The way in which the stored credentials sign in, if the connector knows several. */
  signIn: string | null
  etag: string
}

interface FormProps {
  kind: string
  type: ConnectorType
  stored?: Stored | undefined
  /** Loads the destination again after another person has changed it. */
  reload?: () => void
}

/** The form of a new destination, or of a stored one. Its fields are those of the connector. */
export const DestinationForm = ({ kind, type, stored, reload }: FormProps) => {
  const words = inLanguage(destinationsCatalogue)
  const { connector } = inLanguage(connectorFieldsCatalogue)
  const [result, setResult] = useState<Schemas['TestResult']>()
  const config = fieldsOf(type.config, 'config')
  const storedSignIn = stored?.signIn
  const credentials = useCredentials(
    type.credentials,
    !stored ? 'new' : typeof storedSignIn === 'string' ? { signIn: storedSignIn } : 'some',
  )
  const form = useForm({
    fields: [...requestFields('POST /destinations').filter(({ path }) => path === 'name'), ...config, ...credentials.fields],
    groups: [credentialsPath],
    stored: stored && { name: stored.name, config: stored.config, ...(stored.signIn !== null && { [signInPath]: stored.signIn }) },
    etag: stored?.etag,
    toBody: (values) => ({ ...(!stored && { config: {} }), ...credentials.toBody(values) }),
  })
  const { orAsk } = credentials

  const test = async (body: Values) => {
    setResult(undefined)
    const settings = Object.fromEntries(Object.entries(body).filter(([key]) => key !== 'name'))
    const [path, sent] = stored
      ? [`/destinations/${stored.id}/test-change`, settings]
      : ['/destinations/test', { connector_type: kind, ...settings }]
    const { data } = await orAsk(call<Schemas['TestResultResponse']>('POST', path, { body: sent, changesNothing: true }))
    setResult(data)
    announce(data.status === 'success' ? words.testOk : words.testFailed)
  }

  const save = async (body: Values) => {
    setResult(undefined)
    if (!stored) {
      const { data } = await call<Schemas['DestinationResponse']>('POST', '/destinations', { body: { connector_type: kind, ...body } })
      announce(words.wasCreated)
      navigate(`destinations/${data.id}`)
      return
    }
    await orAsk(callRaw('PATCH', `/destinations/${stored.id}`, { body, headers: form.headers }))
    announce(words.wasSaved)
    navigate(`destinations/${stored.id}`)
  }

  const further = config.filter(({ isRequired }) => !isRequired)
  const isSet = ({ path, fallback }: SchemaField) => form.texts[path] !== fallback || form.messagesOf(path).length > 0

  return html`<${FormCard}
    form=${form}
    action=${stored ? undefined : words.submitNew}
    cancelTo=${stored ? `destinations/${stored.id}` : 'destinations'}
    onSave=${save}
    reload=${reload}
    result=${result && html`<${TestResult} result=${result} words=${words} name=${form.texts['name'] || connector(kind)} />`}
    buttons=${html`<button
      type="button"
      class="button"
      disabled=${form.busy !== undefined}
      onClick=${() => void form.run('test', test, ['name'])}
    >
      ${form.busy === 'test' ? `${words.testing} …` : words.testSettings}
    </button>`}
  >
    <${FormField} form=${form} path="name" label=${words.name} hint=${words.nameHelp} />
    <${ConnectorFields} form=${form} kind=${kind} fields=${config.filter(({ isRequired }) => isRequired)} />
    ${credentials.own.length > 0 && html`<${Credentials} form=${form} kind=${kind} of=${credentials} />`}
    <details open=${stored !== undefined && further.some(isSet)}>
      <summary>${words.further(further.length)}</summary>
      <${ConnectorFields} form=${form} kind=${kind} fields=${further} />
    </details>
  </${FormCard}>`
}
