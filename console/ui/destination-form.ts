import { useState } from 'preact/hooks'
import { ApiError, call, callRaw, type Schemas } from '../api.ts'
import type { ConnectorType } from '../connector-types.ts'
import { fieldAt, type Values } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import { fieldsOf, signInField, signInPath, type SchemaField } from '../schema-form.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { FormField, Problems } from './fields.ts'
import { FormCard } from './form.ts'
import { announce, Notice } from './parts.ts'
import { useForm } from './use-form.ts'

const destinationsWords = inLanguage(destinationsCatalogue)
const connectorWords = inLanguage(connectorFieldsCatalogue)

/** A destination that is edited, with the entity tag of the version that the form shows. */
interface Stored {
  id: string
  name: string
  config: Values
  /** The way in which the stored credentials sign in, if the connector knows several. */
  signIn: string | null
  etag: string | null
}

const nameField = fieldAt('name', 'text', { isRequired: true, maxLength: 200 })

interface FormProps {
  kind: string
  type: ConnectorType
  stored?: Stored | undefined
  /** Loads the destination again, after somebody else has changed it. */
  reload?: () => void
}

/** The form of a new destination, or of a stored one. Its fields are those of the connector. */
export const DestinationForm = ({ kind, type, stored, reload }: FormProps) => {
  const words = destinationsWords()
  const { label, description, signIn: signInName } = connectorWords()
  // The credentials of a new destination are always sent, those of a stored one only if they are replaced.
  const [hasCredentials, setHasCredentials] = useState(stored === undefined)
  const [result, setResult] = useState<Schemas['TestResult']>()
  const config = fieldsOf(type.config, 'config')
  const credentials = fieldsOf(type.credentials, 'credentials')
  const signIn = signInField(type.credentials)
  const form = useForm({
    fields: [nameField, ...config, ...(hasCredentials ? [...(signIn ? [signIn] : []), ...credentials] : [])],
    groups: ['credentials'],
    stored: stored && { name: stored.name, config: stored.config, ...(stored.signIn !== null && { [signInPath]: stored.signIn }) },
    toBody: (values) => ({
      ...(!stored && { config: {} }),
      ...(hasCredentials && { credentials: {} }),
      // The kind of sign-in only selects the fields of the form.
      ...Object.fromEntries(Object.entries(values).filter(([name]) => name !== signInPath)),
    }),
  })

  /** Runs a request. The relay asks for the credentials if they would be sent to another address. */
  const orAsk = async <Answer>(request: Promise<Answer>): Promise<Answer> =>
    request.catch((thrown: unknown) => {
      if (thrown instanceof ApiError && thrown.details.some(({ path }) => path.startsWith('credentials'))) setHasCredentials(true)
      throw thrown
    })

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
    const headers: Record<string, string> = stored.etag === null ? {} : { 'if-match': stored.etag }
    await orAsk(callRaw('PATCH', `/destinations/${stored.id}`, { body, headers }))
    announce(words.wasSaved)
    navigate(`destinations/${stored.id}`)
  }

  const toggleCredentials = () => {
    form.reset('credentials')
    setHasCredentials(!hasCredentials)
  }
  const shown = (fields: readonly SchemaField[]) =>
    fields
      .filter(({ when }) => when?.(form.texts) !== false)
      .map(
        ({ path, key, title, description: described, isGenerated }) =>
          html`<${FormField}
            key=${path}
            form=${form}
            path=${path}
            label=${label(key, title)}
            hint=${description(kind, key, described)}
            isGenerated=${isGenerated}
          />`,
      )
  const ofSignIn = credentials.filter(({ when }) => when)
  const others = credentials.filter(({ when }) => !when)
  const further = config.filter(({ isRequired }) => !isRequired)
  const isSet = ({ path, fallback }: SchemaField) => form.texts[path] !== fallback || form.messagesOf(path).length > 0
  const credentialsNote = () => {
    if (!stored) return words.credentialsHelp
    if (!hasCredentials && stored.signIn !== null) return words.credentialsKeptOf(signInName(stored.signIn))
    return hasCredentials ? words.credentialsReplaced : words.credentialsKept
  }

  return html`<${FormCard}
    form=${form}
    action=${stored ? words.save : words.submitNew}
    cancelTo=${stored ? `destinations/${stored.id}` : 'destinations'}
    onSave=${save}
    reload=${reload}
    result=${
      result &&
      html`<${Notice} tone=${result.status === 'success' ? 'good' : 'bad'}>
        <strong>${result.status === 'success' ? words.testOk : words.testFailedOf}</strong> <span lang="en">${result.message}</span>
      </${Notice}>`
    }
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
    ${shown(config.filter(({ isRequired }) => isRequired))}
    ${
      credentials.length > 0 &&
      html`<fieldset>
        <legend>${words.credentials}</legend>
        <div role="alert"><${Problems} messages=${form.messagesOf('credentials')} /></div>
        <p class="quiet">${credentialsNote()}</p>
        ${
          stored &&
          html`<button type="button" class="button" aria-expanded=${hasCredentials} onClick=${toggleCredentials}>
            ${hasCredentials ? words.keepCredentials : words.replaceCredentials}
          </button>`
        }
        ${
          hasCredentials &&
          signIn &&
          html`<${FormField}
            form=${form}
            path=${signInPath}
            label=${words.signIn}
            options=${signIn.choices.map((value) => ({ value, label: signInName(value) }))}
          />`
        }
        ${hasCredentials && [...shown(ofSignIn), ...shown(others)]}
      </fieldset>`
    }
    <details open=${stored !== undefined && further.some(isSet)}>
      <summary>${words.further(further.length)}</summary>
      ${shown(further)}
    </details>
  </${FormCard}>`
}
