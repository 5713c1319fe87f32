// The form of an object that administrators configure.
import { callRaw } from '../api.ts'
import type { Values } from '../form.ts'
import { html } from '../html.ts'
import { FormFields, type FieldWords } from './fields.ts'
import { FormCard } from './form.ts'
import type { Form } from './use-form.ts'

/** A stored object, with the ETag of what the form shows. */
export interface Stored<Attributes> {
  id: string
  attributes: Attributes
  etag: string
}

/** What a screen gives to the form of its object. */
export interface FormProps<Attributes> {
  /** The object to change. Without it, the form creates one. */
  stored?: Stored<Attributes>
  /** Shows the current values after another person has saved some. */
  reload: () => void
  onSaved: (id: string) => void
}

/** Creates an object, or changes the stored one. @returns its id @throws ApiError */
export const saveObject = async (resource: string, id: string | undefined, { headers }: Form, body: Values): Promise<string> => {
  const response = await (id === undefined
    ? callRaw('POST', `/${resource}`, { body })
    : callRaw('PATCH', `/${resource}/${id}`, { body, headers }))
  return ((await response.json()) as { data: { id: string } }).data.id
}

interface ObjectFormProps extends FormProps<unknown> {
  form: Form
  /** Name of the resource in the API. */
  resource: string
  /** Address of the list, to which a new object returns. */
  list: string
  words: FieldWords & { create: string }
  more?: Parameters<typeof FormFields>[0]['more']
  has?: Parameters<typeof FormFields>[0]['has']
  /** Sees the request that saves. */
  during?: (request: Promise<string>) => Promise<string>
  /** Stands before the fields. */
  before?: unknown
}

export const ObjectForm = ({
  form,
  resource,
  list,
  words,
  stored,
  more,
  has,
  reload,
  onSaved,
  during = (request) => request,
  before,
}: ObjectFormProps) =>
  html`<${FormCard}
    form=${form}
    action=${stored ? undefined : words.create}
    onSave=${async (body: Values) => onSaved(await during(saveObject(resource, stored?.id, form, body)))}
    reload=${reload}
    cancelTo=${stored ? undefined : list}
  >
    ${before}
    <${FormFields} form=${form} words=${words} more=${more} has=${has} />
  </${FormCard}>`
