import { useRef, useState } from 'preact/hooks'
import { ApiError, call, callRaw, type Schemas } from '../api.ts'
import type { ConnectorSchemas } from '../connector-schemas.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { navigate } from '../router.ts'
import { changedValues, fieldsOf, messagesOf, newValues, textsOf, type Entered, type Field, type Texts } from '../schema-form.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { announce, ErrorNotice, Notice } from './parts.ts'
import { focusFirstProblem, FormField, FormFields, problemText } from './schema-form.ts'

const destinationsWords = inLanguage(destinationsCatalogue)
const connectorWords = inLanguage(connectorFieldsCatalogue)

type Values = Record<string, unknown>

/** A destination that is edited, with the entity tag of the version that the form shows. */
interface Stored {
  id: string
  name: string
  config: Values
  etag: string | null
}

const nameField: Field = {
  key: 'name',
  input: 'text',
  isRequired: true,
  isSecret: false,
  fallback: '',
  choices: [],
  isInteger: false,
  maxLength: 200,
}

interface FormState {
  name: string
  config: Texts
  credentials: Texts
  /** True if the texts of the credentials are sent: always for a new destination. */
  sendsCredentials: boolean
}

const nothingEntered: Entered = { values: {}, problems: {} }

const problemTexts = (fields: readonly Field[], { problems }: Entered): Record<string, string> =>
  Object.fromEntries(
    fields.filter(({ key }) => problems[key] !== undefined).map((field) => [field.key, problemText(problems[field.key]!, field)]),
  )

interface Errors {
  name: string | undefined
  config: Record<string, string>
  credentials: Record<string, string>
  /** Messages that belong to the credentials as a whole. */
  ofCredentials: string[]
  others: string[]
}

const noErrors: Errors = { name: undefined, config: {}, credentials: {}, ofCredentials: [], others: [] }

interface FormProps {
  kind: string
  schemas: ConnectorSchemas
  stored?: Stored | undefined
  /** Loads the destination again, after somebody else has changed it. */
  reload?: () => void
}

/**
 * The form of a new destination, or of a stored one, whose values stay as they were when the form was opened.
 */
export const DestinationForm = ({ kind, schemas, reload, ...props }: FormProps) => {
  const [stored] = useState(props.stored)
  const words = destinationsWords()
  const { label, description } = connectorWords()
  const form = useRef<HTMLFormElement>(null)
  const fields = { config: fieldsOf(schemas.config), credentials: fieldsOf(schemas.credentials) }
  const first = textsOf(fields.config, stored?.config)
  const [entered, setEntered] = useState<FormState>({
    name: stored?.name ?? '',
    config: first,
    credentials: textsOf(fields.credentials),
    sendsCredentials: stored === undefined,
  })
  const [errors, setErrors] = useState<Errors>(noErrors)
  const [state, setState] = useState<{ busy?: 'test' | 'save'; error?: ApiError; result?: Schemas['TestResult'] }>({})

  const config = stored ? changedValues(fields.config, entered.config, first) : newValues(fields.config, entered.config)
  const credentials = entered.sendsCredentials ? newValues(fields.credentials, entered.credentials) : nothingEntered
  const hasNewConfig = Object.keys(config.values).length > 0
  const hasNewName = entered.name !== (stored?.name ?? '')

  /** Shows what is wrong with the texts. @returns true if nothing is */
  const check = (needsName: boolean): boolean => {
    const found: Errors = {
      ...noErrors,
      name: needsName && entered.name.trim() === '' ? problemText('required', nameField) : undefined,
      config: problemTexts(fields.config, config),
      credentials: problemTexts(fields.credentials, credentials),
    }
    setErrors(found)
    const isRight = found.name === undefined && Object.keys({ ...found.config, ...found.credentials }).length === 0
    if (!isRight) focusFirstProblem(form.current)
    return isRight
  }

  const showRefusal = (error: ApiError) => {
    const [ofConfig, ofCredentials] = [
      messagesOf(error.details, 'config', fields.config),
      messagesOf(error.details, 'credentials', fields.credentials),
    ]
    const ofName = error.details.find(({ path }) => path === 'name')
    const known = /^(name|config|credentials)($|\.)/
    const found: Errors = {
      name: ofName?.message,
      config: ofConfig.byKey,
      credentials: ofCredentials.byKey,
      ofCredentials: ofCredentials.general,
      others: [...ofConfig.general, ...error.details.filter(({ path }) => !known.test(path)).map(({ message }) => message)],
    }
    setErrors(found)
    // The relay asks for the credentials if they would be sent to another address.
    if (found.ofCredentials.length > 0) setEntered((before) => ({ ...before, sendsCredentials: true }))
    setState({ error })
    focusFirstProblem(form.current)
  }

  const run = async (busy: 'test' | 'save', action: () => Promise<void>) => {
    if (state.busy || !check(busy === 'save')) return
    setState({ busy })
    try {
      await action()
    } catch (thrown) {
      showRefusal(thrown instanceof ApiError ? thrown : new ApiError(-1, 'unexpected', String(thrown)))
    }
  }

  const test = () =>
    run('test', async () => {
      const change = {
        ...(hasNewConfig && { config: config.values }),
        ...(entered.sendsCredentials && { credentials: credentials.values }),
      }
      const [path, body] = stored
        ? [`/destinations/${stored.id}/test-change`, change]
        : ['/destinations/test', { connector_type: kind, config: config.values, credentials: credentials.values }]
      const { data } = await call<Schemas['TestResultResponse']>('POST', path, { body })
      setState({ result: data })
      announce(data.status === 'success' ? words.testOk : words.testFailed)
    })

  const save = () =>
    run('save', async () => {
      if (!stored) {
        const body = { connector_type: kind, name: entered.name, config: config.values, credentials: credentials.values }
        const { data } = await call<Schemas['DestinationResponse']>('POST', '/destinations', { body })
        announce(words.wasCreated)
        navigate(`destinations/${data.id}`)
        return
      }
      const body = {
        ...(hasNewName && { name: entered.name }),
        ...(hasNewConfig && { config: config.values }),
        ...(entered.sendsCredentials && { credentials: credentials.values }),
      }
      const headers: Record<string, string> = stored.etag === null ? {} : { 'if-match': stored.etag }
      if (Object.keys(body).length > 0) await callRaw('PATCH', `/destinations/${stored.id}`, { body, headers })
      announce(Object.keys(body).length > 0 ? words.wasSaved : words.nothingChanged)
      navigate(`destinations/${stored.id}`)
    })

  const toggleCredentials = () => {
    setEntered((before) => ({ ...before, sendsCredentials: !before.sendsCredentials, credentials: textsOf(fields.credentials) }))
    setErrors((before) => ({ ...before, credentials: {}, ofCredentials: [] }))
  }
  const isConcurrent = state.error?.status === 412
  const onSubmit = (event: Event) => {
    event.preventDefault()
    void save()
  }
  const shared = (part: 'config' | 'credentials') => ({
    prefix: part,
    texts: entered[part],
    errors: errors[part],
    onTexts: (changed: Texts) => setEntered((before) => ({ ...before, [part]: changed })),
    label: ({ key, title }: Field) => label(key, title),
    describe: ({ key, description: described }: Field) => description(kind, key, described),
  })
  const further = fields.config.filter(({ isRequired }) => !isRequired)
  const isSet = (field: Field) => entered.config[field.key] !== field.fallback || errors.config[field.key] !== undefined

  return html`<form ref=${form} class="card schema-form" novalidate onSubmit=${onSubmit}>
    <${FormField}
      id="destination-name"
      field=${nameField}
      text=${entered.name}
      onText=${(name: string) => setEntered((before) => ({ ...before, name }))}
      label=${words.name}
      description=${words.nameHelp}
      error=${errors.name}
    />
    <${FormFields} ...${shared('config')} fields=${fields.config.filter(({ isRequired }) => isRequired)} />
    ${
      fields.credentials.length > 0 &&
      html`<fieldset>
        <legend>${words.credentials}</legend>
        ${errors.ofCredentials.map((message) => html`<p key=${message} class="problem" role="alert">${message}</p>`)}
        <p class="quiet">
          ${stored ? (entered.sendsCredentials ? words.credentialsReplaced : words.credentialsKept) : words.credentialsHelp}
        </p>
        ${
          stored &&
          html`<button type="button" class="button" aria-expanded=${entered.sendsCredentials} onClick=${toggleCredentials}>
            ${entered.sendsCredentials ? words.keepCredentials : words.replaceCredentials}
          </button>`
        }
        ${entered.sendsCredentials && html`<${FormFields} ...${shared('credentials')} fields=${fields.credentials} />`}
      </fieldset>`
    }
    <details open=${stored !== undefined && further.some(isSet)}>
      <summary>${words.further(further.length)}</summary>
      <${FormFields} ...${shared('config')} fields=${further} />
    </details>
    ${
      state.error &&
      (isConcurrent
        ? html`<${Notice} tone="warn">
            <p>${words.hasChanged}</p>
            <button type="button" class="button" onClick=${reload}>${words.loadAgain}</button>
          </${Notice}>`
        : state.error.details.length > 0
          ? html`<${Notice} tone="bad">${[words.someInvalid, ...errors.others].join(' ')}</${Notice}>`
          : html`<${ErrorNotice} error=${state.error} />`)
    }
    ${
      state.result &&
      html`<${Notice} tone=${state.result.status === 'success' ? 'good' : 'bad'}>
        <strong>${state.result.status === 'success' ? words.testOk : words.testFailed}</strong> ${state.result.message}
      </${Notice}>`
    }
    <div class="actions">
      <button type="submit" class="button primary" disabled=${state.busy !== undefined}>
        ${state.busy === 'save' ? `${words.saving} …` : stored ? words.save : words.submitNew}
      </button>
      <button type="button" class="button" disabled=${state.busy !== undefined} onClick=${() => void test()}>
        ${state.busy === 'test' ? `${words.testing} …` : words.testSettings}
      </button>
      <a class="button" href=${stored ? `destinations/${stored.id}` : 'destinations'}>${words.cancel}</a>
    </div>
  </form>`
}
