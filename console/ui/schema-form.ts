// The form of a JSON schema: one input for each field. The rules stand in ../schema-form.ts.
import { html, type Children } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import type { Field, Problem, Texts } from '../schema-form.ts'
import * as schemaFormCatalogue from '../texts/schema-form.ts'

const schemaFormWords = inLanguage(schemaFormCatalogue)

/** Describes a problem that the form has found by itself. */
export const problemText = (problem: Problem, field: Field): string => {
  const { problems } = schemaFormWords()
  return problem === 'range' ? problems.range(field) : problems[problem]
}

interface InputProps {
  id: string
  field: Field
  text: string
  onText: (text: string) => void
  isInvalid: boolean
  isRequired: boolean
}

const Choice = ({ id, field: { choices, fallback }, text, onText, isInvalid, isRequired }: InputProps) => {
  const words = schemaFormWords()
  return html`<select
    id=${id}
    value=${text}
    required=${isRequired}
    aria-invalid=${isInvalid}
    aria-describedby=${`${id}-help`}
    onChange=${(event: Event) => onText((event.target as HTMLSelectElement).value)}
  >
    ${fallback === '' && html`<option value="">${words.noChoice}</option>`}
    ${choices.map((choice) => html`<option key=${choice} value=${choice}>${choice === fallback ? words.isDefault(choice) : choice}</option>`)}
  </select>`
}

const linesOf = { lines: 6, json: 8, pairs: 3, list: 3 }

const Input = (props: InputProps) => {
  const { id, field, text, onText, isInvalid, isRequired } = props
  const { input, isSecret, maxLength } = field
  if (input === 'choice') return html`<${Choice} ...${props} />`
  const shared = {
    id,
    value: text,
    required: isRequired,
    autocomplete: isSecret ? 'new-password' : 'off',
    spellcheck: false,
    'aria-invalid': isInvalid,
    'aria-describedby': `${id}-help`,
    onInput: (event: Event) => onText((event.target as HTMLInputElement).value),
  }
  if (input in linesOf) {
    return html`<textarea
      ...${shared}
      rows=${linesOf[input as keyof typeof linesOf]}
      class=${`mono ${isSecret ? 'masked' : ''}`}
    ></textarea>`
  }
  // Not type=number: browsers change what is typed there, and give no text for what is not a number.
  return html`<input
    ...${shared}
    type=${isSecret ? 'password' : 'text'}
    inputmode=${input === 'number' ? 'numeric' : undefined}
    maxlength=${maxLength}
    class=${input === 'number' ? 'short' : ''}
  />`
}

/** What the form says about a field beside its description. */
const hintsOf = ({ input, fallback, minimum, maximum }: Field): string[] => {
  const words = schemaFormWords()
  return [
    ...(input === 'list' ? [words.onePerLine] : []),
    ...(input === 'pairs' ? [words.pairPerLine] : []),
    ...(input === 'number' && (minimum !== undefined || maximum !== undefined) ? [words.between({ minimum, maximum })] : []),
    ...((input === 'text' || input === 'number') && fallback !== '' ? [`${words.byDefault(fallback)}.`] : []),
  ]
}

const sentence = (text: string) => (/[.:]$/.test(text) || text === '' ? text : `${text}.`)

/** A label, an input, a description and, if something is wrong, what it is. */
export const FormField = ({
  label,
  description = '',
  error,
  ...props
}: Omit<InputProps, 'isInvalid' | 'isRequired'> & {
  label: string
  description?: string
  error?: string | undefined
  isRequired?: boolean
}) => {
  const { id, field, text, onText, isRequired = field.isRequired } = props
  const words = schemaFormWords()
  const help = html`<div id=${`${id}-help`} class="help">
    ${error !== undefined && html`<p class="problem">${error}</p>`}
    <p>${[description === label ? '' : sentence(description), ...hintsOf(field)].filter(Boolean).join(' ')}</p>
  </div>`
  if (field.input === 'switch') {
    return html`<div class="field-row">
      <label class="switch"
        ><input
          id=${id}
          type="checkbox"
          checked=${text === 'true'}
          aria-describedby=${`${id}-help`}
          onChange=${(event: Event) => onText(String((event.target as HTMLInputElement).checked))}
        />
        ${label}</label
      >
      ${help}
    </div>`
  }
  return html`<div class="field-row">
    <label for=${id}>${label}${isRequired && html` <span class="small">${words.required}</span>`}</label>
    <${Input} ...${props} isRequired=${isRequired} isInvalid=${error !== undefined} />
    ${help}
  </div>`
}

/** The fields of an object. @param label and @param describe give the texts of a field */
export const FormFields = ({
  prefix,
  fields,
  texts,
  errors,
  onTexts,
  label,
  describe,
}: {
  prefix: string
  fields: readonly Field[]
  texts: Texts
  errors: Record<string, string>
  onTexts: (texts: Texts) => void
  label: (field: Field) => string
  describe: (field: Field) => string
}): Children =>
  fields.map(
    (field) =>
      html`<${FormField}
        key=${field.key}
        id=${`${prefix}-${field.key}`}
        field=${field}
        text=${texts[field.key] ?? ''}
        onText=${(text: string) => onTexts({ ...texts, [field.key]: text })}
        label=${label(field)}
        description=${describe(field)}
        error=${errors[field.key]}
      />`,
  )

/** Moves the focus to the first input that is wrong, after it has been drawn. */
export const focusFirstProblem = (form: HTMLFormElement | null): void => {
  requestAnimationFrame(() => {
    const input = form?.querySelector<HTMLElement>('[aria-invalid="true"]')
    const hidden = input?.closest('details')
    if (hidden) hidden.open = true
    input?.focus()
  })
}
