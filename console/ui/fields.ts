// The fields of forms: a label, an input, what helps to fill it in and, if something is wrong, what it is.
import { useState } from 'preact/hooks'
import { partsOf, type Field } from '../form.ts'
import { formatBytes, formatDuration } from '../format.ts'
import { html, type Children } from '../html.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as formCatalogue from '../texts/form.ts'
import type { Form, Message } from './use-form.ts'

/** Something that can be chosen. */
export interface Option {
  value: string
  label: string
  /** Written behind the label. */
  note?: string
  /** Written below the label. */
  hint?: string | undefined
}

interface FieldProps {
  form: Form
  path: string
  label: string
  hint?: string | undefined
  /** Written behind the input, unless the name of the value says it. */
  unit?: string | undefined
  /** Number of rows of a text of several lines. */
  rows?: number
  isDisabled?: boolean
  placeholder?: string
  /** The value may be made by the browser. */
  isGenerated?: boolean
  /** What can be chosen, if the choices of the field do not speak for themselves. */
  options?: readonly Option[]
}

/**
 * Returns the unit with which the name of a number ends. A large number is also written so that people can compare it: 86400 seconds are a day.
 */
export const unitOf = (path: string, text: string): string | undefined => {
  const words = inLanguage(formCatalogue)
  const value = Number(text)
  const equals = (unit: string, other: string | false) => (other && text.trim() !== '' ? `${unit} = ${other}` : unit)
  if (path.endsWith('_seconds')) return equals(words.seconds, value >= 60 && formatDuration(value * 1_000, locale()))
  if (path.endsWith('_bytes')) return equals(words.bytes, value >= 1_000 && formatBytes(value, locale()))
  if (path.endsWith('_hours')) return words.hours
  return path.endsWith('_days') ? words.days : undefined
}

const idOf = (path: string) => path.replaceAll('.', '-')

/** Returns the hint as a sentence, unless it only repeats the label. */
const hintOf = ({ label, hint = '' }: Pick<FieldProps, 'label' | 'hint'>): string => {
  if (hint === label || hint === '') return ''
  return /[.:]$/.test(hint) ? hint : `${hint}.`
}

/** Returns the hint of a field with the rules that its value has to follow. */
const rulesOf = ({ input, separator, fallback, minimum, maximum }: Field, hint: string): string => {
  const words = inLanguage(formCatalogue)
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
const rowsOf: Partial<Record<Field['input'], number>> = { lines: 4, json: 8, pairs: 3, list: 3 }

/** Returns a signing secret in the form of Standard Webhooks. */
const randomSecret = (): string => `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`

const Input = ({ form, path, label, unit = unitOf(path, form.texts[path]!), rows, isGenerated, placeholder, options }: FieldProps) => {
  const words = inLanguage(formCatalogue)
  const [isShown, setShown] = useState(false)
  const field = form.fieldOf(path)
  const { input, isSecret, isRequired, maxLength, separator, fallback, choices } = field
  const id = idOf(path)
  const shared = {
    id,
    value: form.texts[path],
    required: form.isRequired(path),
    'aria-invalid': form.messagesOf(path).length > 0,
    'aria-describedby': `${id}-help`,
  }
  if (input === 'choice') {
    const known = options ?? choices.map((choice) => ({ value: choice, label: choice === fallback ? words.isDefault(choice) : choice }))
    const isOpen = fallback === '' && (!isRequired || form.isEmptyAtFirst(path))
    const all = isOpen ? [{ value: '', label: isRequired ? words.choose : words.noChoice }, ...known] : known
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
  if (rowsOf[input] !== undefined && (input !== 'list' || !separator)) {
    return html`<textarea ...${typed} rows=${rows ?? rowsOf[input]} class=${`mono ${isSecret ? 'masked' : ''}`}></textarea>`
  }
  // Not type=number: browsers give no text for what is not a number, and change a number when the page is scrolled.
  const text = html`<input
    ...${typed}
    type=${isSecret && !isShown ? 'password' : input === 'date' ? 'date' : 'text'}
    inputmode=${input === 'number' ? 'numeric' : undefined}
    class=${input === 'number' ? 'number' : input === 'date' || isSecret || path === 'name' ? '' : 'mono'}
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
      ${form.isRequired(path) && form.isEmptyAtFirst(path) && html`<span class="small" aria-hidden="true">${inLanguage(formCatalogue).required}</span>`}
    </p>
    <${Input} ...${props} />
    <${Help} id=${id} rules=${rulesOf(field, hintOf(props))} messages=${form.messagesOf(path)} />
  </div>`
}

/** The texts of the fields of a form, by their paths. */
export interface FieldWords {
  /** The labels, in the order in which the fields are shown. */
  fields: Readonly<Record<string, string>>
  hints: Readonly<Record<string, string>>
  /** The labels of what can be chosen. */
  choices?: Readonly<Record<string, Readonly<Record<string, string>>>>
  choiceHints?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

type Shown = Partial<Omit<FieldProps, 'form' | 'path'>> & {
  /** Path of a field that stands beside it, where there is room. */
  beside?: string
  /** Stands below the field. */
  after?: Children
}

interface FieldsProps {
  form: Form
  words: FieldWords
  /** What only some fields have, by their paths. */
  more?: Readonly<Record<string, Shown>>
  /** Returns false for the path of a field that is shown elsewhere. */
  has?: (path: string) => boolean
}

/** The fields of a form, with the labels, hints and choices of their texts. One without a label has its path, and comes last. */
export const FormFields = ({
  form,
  words: { fields, hints, choices = {}, choiceHints = {} },
  more = {},
  has = () => true,
}: FieldsProps) => {
  const order = Object.keys(fields)
  const placeOf = ({ path }: Field) => (order.includes(path) ? order.indexOf(path) : order.length)
  const optionsOf = ({ path, choices: values }: Field): Option[] | undefined =>
    choices[path] && values.map((value) => ({ value, label: choices[path]![value] ?? value, hint: choiceHints[path]?.[value] }))
  const draw = (field: Field) => {
    const { path } = field
    const { after: _, beside: __, ...rest } = more[path] ?? {}
    const shown = { label: fields[path] ?? path, hint: hints[path], options: optionsOf(field), ...rest }
    return html`<${FormField} key=${path} form=${form} path=${path} ...${shown} />`
  }
  const all = form.fields.filter(({ path }) => has(path))
  const second = new Set(Object.values(more).map(({ beside }) => beside))
  return all
    .filter(({ path }) => !second.has(path))
    .toSorted((one, other) => placeOf(one) - placeOf(other))
    .map((field) => {
      const { after, beside } = more[field.path] ?? {}
      const other = beside === undefined ? undefined : all.find(({ path }) => path === beside)
      return html`${other ? html`<div key=${beside} class="two">${draw(field)} ${draw(other)}</div>` : draw(field)}${after}`
    })
}
