// The credentials of a target in a form. The relay never shows those that it stores.
import { useState } from 'preact/hooks'
import { ApiError } from '../api.ts'
import type { Field, Values } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { fieldsOf, signInField, signInPath, type JsonSchema, type SchemaField } from '../schema-form.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as formCatalogue from '../texts/form.ts'
import { FormField, Problems } from './fields.ts'
import type { Form } from './use-form.ts'

/** Path of the credentials in requests. */
export const credentialsPath = 'credentials'

/** What is stored: nothing yet, an object without credentials, or one with them, also by the name of the way in which they sign in. */
export type StoredCredentials = 'new' | 'none' | 'some' | { signIn: string }

/** Whether credentials are entered. Credentials of a new object always are; stored ones stay unless they are replaced. */
export const useCredentials = (schema: JsonSchema, stored: StoredCredentials) => {
  const [isEntered, setEntered] = useState(stored === 'new')
  const signIn = signInField(schema)
  const own = fieldsOf(schema, credentialsPath)
  const fields: Field[] = isEntered ? [...(signIn ? [signIn] : []), ...own] : []
  return {
    stored,
    isEntered,
    setEntered,
    signIn,
    own,
    /** The fields that are a part of the form now. */
    fields,
    /** Makes the body of a request: credentials are replaced as a whole. The way to sign in only selects fields. */
    toBody: (values: Values): Values => ({
      ...(isEntered && { [credentialsPath]: {} }),
      ...Object.fromEntries(Object.entries(values).filter(([name]) => name !== signInPath)),
    }),
    /** Runs a request. The relay asks for the credentials if they would be sent to another address. */
    orAsk: async <Answer>(request: Promise<Answer>): Promise<Answer> =>
      request.catch((thrown: unknown) => {
        if (thrown instanceof ApiError && thrown.details.some(({ path }) => path.startsWith(credentialsPath))) setEntered(true)
        throw thrown
      }),
  }
}

/** Draws fields with the texts of the connectors. */
export const ConnectorFields = ({ form, kind, fields }: { form: Form; kind: string; fields: readonly SchemaField[] }) => {
  const { label, description } = inLanguage(connectorFieldsCatalogue)
  return fields
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
}

// What identifies comes before what proves, and what few targets need is asked for last.
const ranks = [
  ({ isRequired, when }: SchemaField) => isRequired && !when,
  ({ when }: SchemaField) => when !== undefined,
  ({ isRequired, when, isGenerated }: SchemaField) => isGenerated && !isRequired && !when,
]

interface Props {
  form: Form
  /** Kind of the target, of which some fields have texts of their own. */
  kind: string
  of: ReturnType<typeof useCredentials>
}

/** The credentials in a form that has their fields. */
export const Credentials = ({ form, kind, of: { stored, isEntered, setEntered, signIn, own } }: Props) => {
  const { credentials: words } = inLanguage(formCatalogue)
  const { signIn: signInName } = inLanguage(connectorFieldsCatalogue)
  const isStored = stored !== 'new' && stored !== 'none'
  const note = () => {
    if (isEntered) return isStored ? words.replaced : words.help
    if (typeof stored === 'object') return words.keptOf(signInName(stored.signIn))
    return isStored ? words.kept : words.none
  }
  const toggle = () => {
    form.reset(credentialsPath)
    setEntered(!isEntered)
  }
  const enter = isStored ? words.replace : words.enter
  const [usual, further] = [ranks.flatMap((has) => own.filter(has)), own.filter((field) => !ranks.some((has) => has(field)))]
  return html`<fieldset>
    <legend>${words.title}</legend>
    <div role="alert"><${Problems} messages=${form.messagesOf(credentialsPath)} /></div>
    <p class="quiet">${note()}</p>
    ${
      stored !== 'new' &&
      html`<button type="button" class="button" aria-expanded=${isEntered} onClick=${toggle}>
        ${isEntered ? (isStored ? words.keep : words.cancel) : enter}
      </button>`
    }
    ${
      isEntered &&
      signIn &&
      html`<${FormField}
        form=${form}
        path=${signInPath}
        label=${words.signIn}
        options=${signIn.choices.map((value) => ({ value, label: signInName(value) }))}
      />`
    }
    ${
      isEntered &&
      html`<${ConnectorFields} form=${form} kind=${kind} fields=${usual} /> ${
          further.length > 0 &&
          html`<details open=${further.some(({ path }) => form.messagesOf(path).length > 0)}>
            <summary>${words.further}</summary>
            <${ConnectorFields} form=${form} kind=${kind} fields=${further} />
          </details>`
        }`
    }
  </fieldset>`
}
