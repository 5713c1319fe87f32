// A form that creates or changes something, with its buttons and with the reason why the relay has refused it.
import { html, type Children } from '../html.ts'
import { inLanguage, texts } from '../preferences.ts'
import * as formCatalogue from '../texts/form.ts'
import { announce, ErrorDetails, ErrorNotice, Notice } from './parts.ts'
import { saving, type Form } from './use-form.ts'

const Refusal = ({ form: { error, others, isUnchanged }, reload }: { form: Form; reload: () => void }) => {
  const words = inLanguage(formCatalogue)
  if (isUnchanged) return html`<${Notice} tone="info">${words.unchanged}</${Notice}>`
  if (!error) return null
  if (error.status === 412) {
    return html`<${Notice} tone="bad">
      <p>${words.conflict}</p>
      <button type="button" class="button" onClick=${reload}>${words.loadCurrent}</button>
    </${Notice}>`
  }
  if (others.length === error.details.length) return html`<${ErrorNotice} error=${error} />`
  return html`<${Notice} tone="bad">
    <p>${words.someInvalid}</p>
    <${ErrorDetails} details=${others} />
  </${Notice}>`
}

interface FormCardProps {
  form: Form
  /** Name of the form, unless the heading of the screen says it. */
  label?: string
  /** Shown above the form, if the heading of the screen is another one. */
  title?: string
  /** Label of the button that saves, unless it says so. */
  action?: string | undefined
  /** Address of the screen without the form. */
  cancelTo?: string
  onCancel?: () => void
  isDisabled?: boolean
  /** True if the form has cards of its own. */
  isBroad?: boolean
  onSave: (body: Form['body']) => Promise<void>
  /** Shows the current values after another person has saved some. */
  reload?: () => void
  /** Stands between the fields and the buttons. */
  result?: Children
  /** Stands beside the button that saves. */
  buttons?: Children
  children?: Children
}

export const FormCard = ({
  form,
  label,
  title,
  action = inLanguage(formCatalogue).save,
  cancelTo,
  onCancel,
  isDisabled = false,
  isBroad = false,
  onSave,
  reload = () => location.reload(),
  result,
  buttons,
  children,
}: FormCardProps) => {
  const { common } = texts()
  const submit = (event: Event) => {
    event.preventDefault()
    void form.save(async (body) => {
      await onSave(body)
      announce(inLanguage(formCatalogue).saved)
    })
  }
  return html`<form ref=${form.element} class=${`form ${isBroad ? 'broad' : 'card'}`} aria-label=${label} novalidate onSubmit=${submit}>
    ${title !== undefined && html`<h2>${title}</h2>`} ${children}
    <${Refusal} form=${form} reload=${reload} />
    ${result}
    <div class="actions">
      <button type="submit" class="button primary" disabled=${isDisabled || form.busy !== undefined}>
        ${form.busy === saving ? `${inLanguage(formCatalogue).saving} …` : action}
      </button>
      ${buttons} ${cancelTo !== undefined && html`<a class="button" href=${cancelTo}>${common.cancel}</a>`}
      ${onCancel && html`<button type="button" class="button" onClick=${onCancel}>${common.cancel}</button>`}
    </div>
  </form>`
}
