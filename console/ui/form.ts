// Forms that create or change something, and their fields.
import { useState } from 'preact/hooks'
import type { ApiError } from '../api.ts'
import { html, type Children } from '../html.ts'
import { texts } from '../preferences.ts'
import { ErrorNotice, Notice } from './parts.ts'

interface FieldProps {
  /** Also the name of the value. */
  id: string
  label: string
  hint?: Children
  /** What is wrong with the value. */
  error?: string | undefined
}

/** A label, its control and what helps to fill it in. The control takes `described` as its description. */
const Field = ({ id, label, hint, error, children }: FieldProps & { children?: Children }) =>
  html`<div class="entry">
    <label for=${id}>${label}</label>
    ${children} ${hint !== undefined && html`<p class="small" id=${`${id}-hint`}>${hint}</p>`}
    ${error !== undefined && html`<p class="problem" id=${`${id}-problem`}>${error}</p>`}
  </div>`

const described = ({ id, hint, error }: FieldProps) => ({
  'aria-describedby': [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-problem`].filter(Boolean).join(' ') || undefined,
  'aria-invalid': error === undefined ? undefined : true,
})

const valueOf = (event: Event) => (event.target as HTMLInputElement).value

interface TextProps extends FieldProps {
  value: string
  onInput: (value: string) => void
  required?: boolean
  maxLength?: number
  /** `number` for a whole number that is not negative. */
  type?: 'text' | 'number' | 'password' | 'date'
  /** Written behind the value. */
  unit?: string | undefined
  isMono?: boolean
  placeholder?: string
}

// Not type=number: browsers give no text for what is not a number, and change a number when the page is scrolled.
const typeOf = ({ type = 'text' }: TextProps) => (type === 'number' ? 'text' : type)

export const TextField = (props: TextProps) => {
  const isNumber = props.type === 'number'
  const input = html`<input
    id=${props.id}
    name=${props.id}
    type=${typeOf(props)}
    inputmode=${isNumber ? 'numeric' : undefined}
    class=${isNumber ? 'number' : props.isMono ? 'mono' : ''}
    value=${props.value}
    required=${props.required}
    maxlength=${props.maxLength}
    placeholder=${props.placeholder}
    autocomplete=${props.type === 'password' ? 'new-password' : 'off'}
    spellcheck=${false}
    onInput=${(event: Event) => props.onInput(valueOf(event))}
    ...${described(props)}
  />`
  return html`<${Field} ...${props}>
    ${props.unit === undefined ? input : html`<span class="with-unit">${input}<span class="quiet">${props.unit}</span></span>`}
  </${Field}>`
}

export const TextArea = (props: TextProps & { rows: number }) =>
  html`<${Field} ...${props}>
    <textarea
      id=${props.id}
      name=${props.id}
      rows=${props.rows}
      class=${props.isMono ? 'mono' : ''}
      value=${props.value}
      required=${props.required}
      placeholder=${props.placeholder}
      spellcheck=${false}
      onInput=${(event: Event) => props.onInput(valueOf(event))}
      ...${described(props)}
    ></textarea>
  </${Field}>`

export const Choice = (
  props: FieldProps & { value: string; options: readonly (readonly [value: string, label: string])[]; onInput: (value: string) => void },
) =>
  html`<${Field} ...${props}>
    <select
      id=${props.id}
      name=${props.id}
      value=${props.value}
      onChange=${(event: Event) => props.onInput(valueOf(event))}
      ...${described(props)}
    >
      ${props.options.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
    </select>
  </${Field}>`

export const Checkbox = ({
  id,
  label,
  hint,
  isChecked,
  isDisabled = false,
  onChange,
}: FieldProps & { isChecked: boolean; isDisabled?: boolean; onChange: (isChecked: boolean) => void }) =>
  html`<div class="entry">
    <label class="check">
      <input
        id=${id}
        type="checkbox"
        checked=${isChecked}
        disabled=${isDisabled}
        aria-describedby=${hint === undefined ? undefined : `${id}-hint`}
        onChange=${(event: Event) => onChange((event.target as HTMLInputElement).checked)}
      />
      ${label}
    </label>
    ${hint !== undefined && html`<p class="small" id=${`${id}-hint`}>${hint}</p>`}
  </div>`

/** Why the relay has not saved a form. @param reload shows the current values, if somebody else has saved others meanwhile */
export const SaveError = ({ error, reload }: { error: ApiError; reload?: () => void }) => {
  const { form } = texts()
  if (error.status !== 412) {
    return html`<${ErrorNotice} error=${error} /> ${
        error.details.length > 0 &&
        html`<ul class="problems">
          ${error.details.map(({ path, message }) => html`<li key=${path}><code>${path}</code> ${message}</li>`)}
        </ul>`
      }`
  }
  return html`<${Notice} tone="bad">
    <p>${form.conflict}</p>
    ${reload && html`<button type="button" class="button" onClick=${reload}>${form.loadCurrent}</button>`}
  </${Notice}>`
}

/** A form with its buttons. Shows why a request was refused. @param cancelTo address of the screen without the form */
export const EntryForm = ({
  label,
  title,
  action,
  cancelTo,
  isDisabled = false,
  onSubmit,
  children,
}: {
  label: string
  /** Shown above the form, if the heading of the screen is another one. */
  title?: string
  action: string
  cancelTo: string
  isDisabled?: boolean
  onSubmit: () => Promise<void>
  children?: Children
}) => {
  const [state, setState] = useState<{ isBusy: boolean; error?: ApiError }>({ isBusy: false })
  const submit = async (event: Event) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      await onSubmit()
      setState({ isBusy: false })
    } catch (thrown) {
      setState({ isBusy: false, error: thrown as ApiError })
    }
  }
  const { isBusy, error } = state
  return html`<form class="card form" aria-label=${label} onSubmit=${(event: Event) => void submit(event)}>
    ${title !== undefined && html`<h2>${title}</h2>`} ${children}
    ${error && html`<${SaveError} error=${error} reload=${() => location.reload()} />`}
    <div class="actions">
      <button type="submit" class="button primary" disabled=${isBusy || isDisabled}>${action}</button>
      <a class="button" href=${cancelTo}>${texts().common.cancel}</a>
    </div>
  </form>`
}
