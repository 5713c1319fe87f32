import { useState } from 'preact/hooks'
import { call, callRaw, may, type Schemas } from '../api.ts'
import type { Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { addressOf, pageOf, route } from '../router.ts'
import * as holdsCatalogue from '../texts/holds.ts'
import { FormFields } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { announce, Confirm, Heading, Loaded, Pager, Table, Time } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'

type Hold = Schemas['LegalHold']

const perPage = 25
const subjectFields = ['repo_id', 'doc_id', 'erp_object_type', 'erp_object_id'] as const

const subjectOf = ({ attributes }: Hold): string =>
  `${inLanguage(holdsCatalogue).scopes[attributes.scope]} ${subjectFields.flatMap((field) => attributes[field] ?? []).join(' ')}`

const addressOfDocuments = ({ attributes }: Hold): string => {
  const { scope, repo_id: repoId, doc_id: docId, erp_object_type: type, erp_object_id: key } = attributes
  return addressOf('documents', scope === 'repository' ? { repo_id: repoId ?? '' } : { q: docId ?? `${type} ${key}` })
}

const CreateForm = ({ start, onDone, onClose }: { start: Values; onDone: () => void; onClose: () => void }) => {
  const words = inLanguage(holdsCatalogue)
  const form = useForm({ fields: requestFields('POST /legal-holds'), start })
  const create = async (body: Values) => {
    const { data } = await call<Schemas['LegalHoldResponse']>('POST', '/legal-holds', { body })
    announce(words.isSet(data.attributes.documents))
    onDone()
  }
  return html`<${FormCard}
    form=${form}
    label=${words.create}
    title=${words.create}
    action=${words.create}
    onCancel=${onClose}
    onSave=${create}
  >
    <p>${words.one}</p>
    <${FormFields} form=${form} words=${words} />
  </${FormCard}>`
}

const ConfirmLift = ({ hold, onDone, onClose }: { hold: Hold; onDone: () => void; onClose: () => void }) => {
  const words = inLanguage(holdsCatalogue)
  const [reason, setReason] = useState('')
  const lift = async () => {
    await callRaw('POST', `/legal-holds/${hold.id}/lift`, { body: { reason } })
    announce(words.lifted)
    onDone()
  }
  return html`<${Confirm} isDestructive title=${words.confirmLift} action=${words.lift} onConfirm=${lift} onClose=${onClose}>
    <p>${words.liftEffect(subjectOf(hold))}</p>
    <label class="field" for="lift-reason"><span>${words.fields.reason}</span></label>
    <input
      id="lift-reason"
      value=${reason}
      onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setReason(currentTarget.value)}
    />
    <p class="small">${words.hints.reason}</p>
  </${Confirm}>`
}

const Row = ({ hold, onLift }: { hold: Hold; onLift: () => void }) => {
  const words = inLanguage(holdsCatalogue)
  const { reason, documents, set_by: setBy, created_at: createdAt } = hold.attributes
  const subject = subjectOf(hold)
  return html`<tr role="row">
    <td role="cell" class="main-cell"><a class="break" href=${addressOfDocuments(hold)}>${subject}</a></td>
    <td role="cell" data-label=${words.documents}>${documents}</td>
    <td role="cell" data-label=${words.fields.reason}>${reason}</td>
    <td role="cell" data-label=${words.set}><${Time} at=${createdAt} /> <span class="small">${setBy ?? words.commandLine}</span></td>
    <td role="cell">
      ${may('admin') && html`<button type="button" class="button" aria-label=${words.liftHold(subject)} onClick=${onLift}>${words.lift}</button>`}
    </td>
  </tr>`
}

/** Lists what is on hold. The query of the address may name what to put on hold. */
export const HoldsScreen = () => {
  const words = inLanguage(holdsCatalogue)
  const { common, screens } = texts()
  const { query } = route.value
  const page = pageOf(query)
  const start = Object.fromEntries(subjectFields.flatMap((field) => (query.has(field) ? [[field, query.get(field)]] : [])))
  const live = useLive(`holds ${page}`, (signal) =>
    call<Schemas['LegalHoldList']>('GET', '/legal-holds', { query: { page, per_page: perPage }, signal }),
  )
  const [isCreating, setCreating] = useState(Object.keys(start).length > 0)
  const [asked, setAsked] = useState<Hold>()
  const close = () => setCreating(false)
  const created = () => {
    close()
    live.reload()
  }
  return html`<${Heading} title=${screens.holds}>
      ${
        live.data &&
        !isCreating &&
        may('admin') &&
        html`<button type="button" class="button primary" onClick=${() => setCreating(true)}>${words.create}</button>`
      }
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    ${isCreating && may('admin') && html`<${CreateForm} start=${start} onDone=${created} onClose=${close} />`}
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        return html`${
            data.length === 0
              ? html`<p class="empty">${words.none}</p>`
              : html`<${Table}
                  label=${screens.holds}
                  columns=${[words.subject, words.documents, words.fields.reason, words.set, common.actions]}
                >
                  ${data.map((hold) => html`<${Row} key=${hold.id} hold=${hold} onLift=${() => setAsked(hold)} />`)}
                </${Table}>`
          }
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf('holds', { page: to === 1 ? undefined : String(to) })}
          />
          <p class="small">${words.liftedHolds} <a href=${addressOf('audit', { event: 'legal_hold.lifted' })}>${words.toAudit}</a></p>
          ${asked && html`<${ConfirmLift} hold=${asked} onDone=${live.reload} onClose=${() => setAsked(undefined)} />`}`
      }}
    </${Loaded}>`
}
