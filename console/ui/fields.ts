// The fields of forms: a label, an input, what helps to fill it in and, if something is wrong, what it is.
import { useState } from 'preact/hooks'
import { partsOf, type Field } from '../form.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as formCatalogue from '../texts/form.ts'
import type { Form, Message } from './use-form.ts'

const formWords = inLanguage(formCatalogue)

/** Something that can be chosen. */
export interface Option {
  value: string
  label: string
  /** Written behind the label. */
  note?: string
  /** Written below the label. */
  hint?: string
}

interface FieldProps {
  form: Form
  path: string
  label: string
  hint?: string | undefined
  /** Written behind the input. */
  unit?: string | undefined
  /** Of a text of several lines. */
  rows?: number
  isMono?: boolean
  isDisabled?: boolean
  placeholder?: string
  /** The value may be made by the browser. */
  isGenerated?: boolean
  /** What can be chosen, if the choices of the field do not speak for themselves. */
  options?: readonly Option[]
}

const idOf = (path: string) => path.replaceAll('.', '-')

/** Returns the hint as a sentence, unless it only repeats the label. */
const hintOf = ({ label, hint = '' }: Pick<FieldProps, 'label' | 'hint'>): string => {
  if (hint === label || hint === '') return ''
  return /[.:]$/.test(hint) ? hint : `${hint}.`
}

/** Returns the hint of a field with the rules that its value has to follow. */
const rulesOf = ({ input, separator, fallback, minimum, maximum }: Field, hint: string): string => {
  const words = formWords()
  return [
    hint,
    ...(input === 'list' && !separator ? [words.onePerLine] : []),
    ...(input === 'pairs' ? [words.pairPerLine] : []),
    ...(input === 'number' && (maximum !== undefined || (minimum ?? 0) > 0) ? [words.allowed({ minimum, maximum })] : []),
    ...((input === 'text' || input === 'number') && fallback !== '' ? [words.byDefault(fallback)] : []),
  ]
    .filter(Boolean)
    .join(' ')
}

/** Says what is wrong with a value. */
export const Problems = ({ messages }: { messages: readonly Message[] }) =>
  messages.map(({ text, lang }) => html`<p key=${text} class="problem" lang=${lang}>${text}</p>`)

const Help = ({ id, rules, messages }: { id: string; rules: string; messages: readonly Message[] }) =>
  html`<div id=${`${id}-help`} class="help">
    <${Problems} messages=${messages} />
    ${rules !== '' && html`<p class="small">${rules}</p>`}
  </div>`

const valueOf = (event: Event) => (event.target as HTMLInputElement).value
const isChecked = (event: Event) => (event.target as HTMLInputElement).checked

/** The rows of an input of several lines. */
const rowsOf: Partial<Record<Field['input'], number>> = { lines: 6, json: 8, pairs: 3, list: 3 }

/** Returns a signing secret in the form of Standard Webhooks. */
const randomSecret = (): string => `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`

const Input = ({ form, path, label, unit, rows, isMono, isGenerated, placeholder, options }: FieldProps) => {
  const words = formWords()
  const [isShown, setShown] = useState(false)
  const field = form.fieldOf(path)
  const { input, isSecret, maxLength, separator, fallback, choices } = field
  const id = idOf(path)
  const shared = {
    id,
    value: form.texts[path],
    required: form.isRequired(path),
    'aria-invalid': form.messagesOf(path).length > 0,
    'aria-describedby': `${id}-help`,
  }
  if (input === 'choice') {
    const known = choices.map((choice) => ({ value: choice, label: choice === fallback ? words.isDefault(choice) : choice }))
    const all = options ?? (fallback === '' ? [{ value: '', label: words.noChoice }, ...known] : known)
    return html`<select ...${shared} onChange=${(event: Event) => form.enter(path, valueOf(event))}>
      ${all.map((option) => html`<option key=${option.value} value=${option.value}>${option.label}</option>`)}
    </select>`
  }
  const typed = {
    ...shared,
    placeholder,
    maxlength: maxLength,
    autocomplete: isSecret ? 'new-password' : 'off',
    spellcheck: false,
    onInput: (event: Event) => form.enter(path, valueOf(event)),
  }
  if (rowsOf[input] !== undefined && !separator) {
    return html`<textarea ...${typed} rows=${rows ?? rowsOf[input]} class=${`mono ${isSecret ? 'masked' : ''}`}></textarea>`
  }
  // Not type=number: browsers give no text for what is not a number, and change a number when the page is scrolled.
  const text = html`<input
    ...${typed}
    type=${isSecret && !isShown ? 'password' : input === 'date' ? 'date' : 'text'}
    inputmode=${input === 'number' ? 'numeric' : undefined}
    class=${input === 'number' ? 'number' : isMono ? 'mono' : ''}
  />`
  const generate = () => {
    form.enter(path, randomSecret())
    setShown(true)
  }
  if (isGenerated) {
    return html`<span class="with-unit"
        >${text}<button type="button" class="button" aria-label=${words.generateOf(label)} onClick=${generate}>
          ${words.generate}
        </button></span
      >
      ${isShown && html`<p class="small" role="status">${words.generated}</p>`}`
  }
  return unit === undefined ? text : html`<span class="with-unit">${text}<span class="quiet">${unit}</span></span>`
}

const Switch = ({ form, path, label, hint, isDisabled = false }: FieldProps) => {
  const id = idOf(path)
  return html`<div class="entry">
    <label class="check">
      <input
        id=${id}
        type="checkbox"
        checked=${form.texts[path] === 'true'}
        disabled=${isDisabled}
        aria-describedby=${`${id}-help`}
        onChange=${(event: Event) => form.enter(path, String(isChecked(event)))}
      />
      ${label}
    </label>
    <${Help} id=${id} rules=${hintOf({ label, hint })} messages=${form.messagesOf(path)} />
  </div>`
}

const Checks = ({ form, path, label, hint, options = [] }: FieldProps) => {
  const id = idOf(path)
  const chosen = partsOf(form.texts[path]!)
  const messages = form.messagesOf(path)
  const choose = (changed: string, isChosen: boolean) => {
    const known = options.map(({ value }) => value)
    const isWanted = (value: string) => (value === changed ? isChosen : chosen.includes(value))
    // What is chosen but not among the options, because only so many were loaded, stays.
    form.enter(path, [...chosen.filter((value) => !known.includes(value)), ...known.filter(isWanted)].join('\n'))
  }
  const one = ({ value, label: name, note, hint: optionHint }: Option) => {
    const optionId = `${id}-${value}`
    return html`<li key=${value}>
      <label class="check">
        <input
          id=${optionId}
          type="checkbox"
          checked=${chosen.includes(value)}
          aria-invalid=${messages.length > 0}
          aria-describedby=${optionHint === undefined ? undefined : `${optionId}-help`}
          onChange=${(event: Event) => choose(value, isChecked(event))}
        />
        <span>${name}${note !== undefined && html` <span class="small">${note}</span>`}</span>
      </label>
      ${optionHint !== undefined && html`<p id=${`${optionId}-help`} class="small">${optionHint}</p>`}
    </li>`
  }
  return html`<fieldset class="entry" aria-describedby=${`${id}-help`}>
    <legend>${label}</legend>
    <${Help} id=${id} rules=${hintOf({ label, hint })} messages=${messages} />
    ${
      options.length > 0 &&
      html`<ul class="checks">
        ${options.map(one)}
      </ul>`
    }
  </fieldset>`
}

/** The field of a form for the value at a path. */
export const FormField = (props: FieldProps) => {
  const { form, path, label } = props
  const field = form.fieldOf(path)
  if (field.input === 'switch' || field.input === 'object') return html`<${Switch} ...${props} />`
  if (field.input === 'checks') return html`<${Checks} ...${props} />`
  const id = idOf(path)
  return html`<div class="entry">
    <p class="label">
      <label for=${id}>${label}</label>
      ${form.isRequired(path) && form.isEmptyAtFirst(path) && html`<span class="small" aria-hidden="true">${formWords().required}</span>`}
    </p>
    <${Input} ...${props} />
    <${Help} id=${id} rules=${rulesOf(field, hintOf(props))} messages=${form.messagesOf(path)} />
  </div>`
}
