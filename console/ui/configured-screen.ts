// The screen of an object that administrators configure: what it is, its form, and its deletion.
import { useState } from 'preact/hooks'
import { callRaw, callVersioned, may } from '../api.ts'
import type { Field, Values as FieldValues } from '../form.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { navigate } from '../router.ts'
import * as formCatalogue from '../texts/form.ts'
import { factsOf, type Fact } from './field-facts.ts'
import type { FieldWords } from './fields.ts'
import type { FormProps } from './object-form.ts'
import { announce, Confirm, Facts, Heading, Loaded, Notice } from './parts.ts'

/** Something that a button of the screen opens. */
interface Panel {
  label: string
  /** @param done closes it, and says what has happened */
  show: (done: (message: string) => void, close: () => void) => Children
}

interface Configurable {
  name: string
}

interface Configured<Attributes extends Configurable, Context> {
  /** Name of the resource in the API. */
  resource: string
  /** Name of the screen with all objects. */
  list: 'enrichments' | 'notifications' | 'subscriptions'
  words: FieldWords & { back: string; create: string; confirmDelete: string; deleteEffect: (name: string) => string }
  fields: readonly Field[]
  /** Loads what the form can choose from. */
  loadContext: (signal: AbortSignal) => Promise<Context>
  /** Returns why no object can be created: no destination that fits. */
  whyNot?: (context: Context) => string | undefined
  /** Stands beside the heading. */
  state: (attributes: Attributes) => Children
  /** Stands above the buttons. */
  warning?: (attributes: Attributes) => Children
  buttons?: Children
  panels?: Readonly<Record<string, Panel>>
  /** Stands below the buttons. */
  result?: (attributes: Attributes, context: Context) => Children
  /** Returns what is shown in place of values, by the paths of their fields. Undefined hides one. */
  values: (attributes: Attributes, context: Context) => Readonly<Record<string, Children>>
  /** Returns what is known beside the fields. */
  facts?: (attributes: Attributes) => Fact[]
  /** Stands below the facts. */
  details?: (attributes: Attributes) => Children
  form: (props: FormProps<Attributes>, context: Context) => Children
  /** Stands below all of them, but not below the form. */
  below?: (attributes: Attributes, context: Context) => Children
}

const formPanel = 'form'

const Values = <Attributes extends Configurable, Context>({
  of: { fields, words, values, facts, details },
  attributes,
  context,
}: {
  of: Configured<Attributes, Context>
  attributes: Attributes
  context: Context
}) => {
  return html`<section class="card" aria-label=${attributes.name}>
    <${Facts}
      of=${[
        ...factsOf(fields, words, attributes as object as FieldValues, { name: undefined, ...values(attributes, context) }),
        ...(facts?.(attributes) ?? []),
      ]}
    />
    ${details?.(attributes)}
  </section>`
}

const Existing = <Attributes extends Configurable, Context>({ id, of }: { id: string; of: Configured<Attributes, Context> }) => {
  const { resource, list, words, panels = {} } = of
  const { screens } = texts()
  const common = inLanguage(formCatalogue)
  const [version, setVersion] = useState({ number: 0, message: '' })
  const [open, setOpen] = useState<string>()
  const [isAsked, setAsked] = useState(false)
  const path = `/${resource}/${encodeURIComponent(id)}`
  const load = async (signal: AbortSignal) => {
    const [{ data, etag }, context] = await Promise.all([
      callVersioned<{ data: { attributes: Attributes } }>(path, signal),
      of.loadContext(signal),
    ])
    return { attributes: data.attributes, etag, context }
  }
  // A form keeps its values, even if another person changes the object.
  const live = useLive(`${id} ${version.number}`, load, open === formPanel ? 0 : undefined)
  const loadAgain = (message: string) => setVersion(({ number }) => ({ number: number + 1, message }))
  const done = (message: string) => {
    announce(message)
    setOpen(undefined)
    loadAgain(message)
  }
  const remove = async () => {
    await callRaw('DELETE', path, { headers: { 'if-match': live.data!.etag } })
    navigate(list)
  }
  const toggle = (name: string, label: string) =>
    html`<button
      key=${name}
      type="button"
      class="button"
      aria-expanded=${open === name}
      onClick=${() => setOpen(open === name ? undefined : name)}
    >
      ${label}
    </button>`
  const attributes = live.data?.attributes
  return html`<${Heading} title=${attributes?.name ?? screens[list]}>${attributes && of.state(attributes)}</${Heading}>
    ${version.message !== '' && open === undefined && html`<${Notice} tone="good">${version.message}</${Notice}>`}
    <${Loaded} live=${live}>
      ${() => {
        const { attributes: shown, etag, context } = live.data!
        return html`${of.warning?.(shown)}
          <div class="actions">
            ${
              may('member') &&
              html`${of.buttons} ${Object.entries(panels).map(([name, { label }]) => toggle(name, label))} ${toggle(formPanel, common.edit)}`
            }
            ${may('admin') && html`<button type="button" class="button" onClick=${() => setAsked(true)}>${common.delete}</button>`}
          </div>
          ${of.result?.(shown, context)} ${open !== undefined && panels[open]?.show(done, () => setOpen(undefined))}
          ${
            open === formPanel
              ? html`<div key=${version.number}>
                  ${of.form({ stored: { id, attributes: shown, etag }, reload: () => loadAgain(''), onSaved: () => done(common.saved) }, context)}
                </div>`
              : html`<${Values} of=${of} attributes=${shown} context=${context} /> ${of.below?.(shown, context)}`
          }
          ${
            isAsked &&
            html`<${Confirm}
              isDestructive
              title=${words.confirmDelete}
              action=${common.delete}
              onConfirm=${remove}
              onClose=${() => setAsked(false)}
            >
              <p>${words.deleteEffect(shown.name)}</p>
            </${Confirm}>`
          }`
      }}
    </${Loaded}>`
}

const New = <Attributes extends Configurable, Context>({ of }: { of: Configured<Attributes, Context> }) => {
  const live = useLive(`new ${of.resource}`, of.loadContext, 0)
  return html`<${Heading} title=${of.words.create} />
    <${Loaded} live=${live}>
      ${() => {
        const why = of.whyNot?.(live.data!)
        return why === undefined
          ? of.form({ reload: live.reload, onSaved: (id) => navigate(`${of.list}/${id}`) }, live.data!)
          : html`<${Notice} tone="info"><a href="destinations/new">${why}</a></${Notice}>`
      }}
    </${Loaded}>`
}

/** Returns the screen of one object, or of a new one. */
export const configuredScreen = <Attributes extends Configurable, Context>(id: string, of: Configured<Attributes, Context>) =>
  html`<p class="back"><a href=${of.list}>${of.words.back}</a></p>
    ${id === 'new' ? html`<${New} of=${of} />` : html`<${Existing} key=${id} id=${id} of=${of} />`}`
