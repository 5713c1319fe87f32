import { useState } from 'preact/hooks'
import { call, callRaw, session, type Schemas } from '../api.ts'
import type { Values } from '../form.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { addressOf, pageOf, route } from '../router.ts'
import * as keysCatalogue from '../texts/keys.ts'
import { FormFields } from '../ui/fields.ts'
import { FormCard } from '../ui/form.ts'
import { announce, Badge, Confirm, Copyable, ExactTime, Heading, Loaded, Notice, Pager, Table, Time } from '../ui/parts.ts'
import { useForm } from '../ui/use-form.ts'

type Key = Schemas['ApiKey']
type NewKey = Schemas['ApiKeyWithSecret']

const perPage = 25

/** Returns the end of a day here. @param day `YYYY-MM-DD` */
const endOf = (day: string): Date => new Date(`${day}T23:59:59`)

const CreateForm = ({ onCreated, onClose }: { onCreated: (key: NewKey) => void; onClose: () => void }) => {
  const words = inLanguage(keysCatalogue)
  const form = useForm({
    // The API does not list the members from whom one could be chosen.
    fields: requestFields('POST /api-keys').filter(({ path }) => path !== 'user_id'),
    start: { level: 'viewer' },
    check: ({ expires_at: day }): Record<string, string> =>
      typeof day === 'string' && !(endOf(day).getTime() > Date.now()) ? { expires_at: words.inThePast } : {},
    toBody: (values) => ({ ...values, ...(typeof values['expires_at'] === 'string' && { expires_at: endOf(values['expires_at']) }) }),
  })
  const create = async (body: Values) => onCreated((await call<Schemas['ApiKeyWithSecretResponse']>('POST', '/api-keys', { body })).data)
  return html`<${FormCard}
    form=${form}
    label=${words.create}
    title=${words.create}
    action=${words.create}
    onCancel=${onClose}
    onSave=${create}
  >
    <${FormFields} form=${form} words=${words} />
  </${FormCard}>`
}

/** The only sight of a new key. */
const Created = ({ apiKey: { attributes }, onDone }: { apiKey: NewKey; onDone: () => void }) => {
  const words = inLanguage(keysCatalogue)
  return html`<${Notice} tone="good">
    <h2>${words.createdTitle(attributes.name)}</h2>
    <p>${words.copyNow}</p>
    <p class="new-key"><${Copyable} text=${attributes.key} /></p>
    <button type="button" class="button" onClick=${onDone}>${words.done}</button>
  </${Notice}>`
}

const Row = ({ apiKey: { id, attributes }, onRevoke }: { apiKey: Key; onRevoke: () => void }) => {
  const words = inLanguage(keysCatalogue)
  const { name, level, user_id: member, expires_at: expiresAt, last_used_at: lastUsedAt, created_at: createdAt } = attributes
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now()
  return html`<tr role="row">
    <td role="cell" class="main-cell">
      <strong>${name}</strong> ${id === session.value!.key_id && html`<${Badge} status="active" label=${words.own} />`}
      <span class="small mono break">relay_${id}_…</span>
      ${member !== null && html`<span class="small">${words.member(member)}</span>`}
    </td>
    <td role="cell">${words.levelNames[level]}</td>
    <td role="cell" data-label=${words.created}><${Time} at=${createdAt} /></td>
    <td role="cell" data-label=${words.lastUsed}>
      ${lastUsedAt === null ? html`<span class="quiet">${words.neverUsed}</span>` : html`<${Time} at=${lastUsedAt} />`}
    </td>
    <td role="cell" data-label=${words.fields.expires_at}>
      ${isExpired && html`<${Badge} status="failed" label=${words.expired} />`}
      ${expiresAt === null ? html`<span class="quiet">${words.never}</span>` : html`<${ExactTime} at=${expiresAt} />`}
    </td>
    <td role="cell">
      <button type="button" class="button" aria-label=${words.revokeKey(name)} onClick=${onRevoke}>${words.revoke}</button>
    </td>
  </tr>`
}

export const KeysScreen = () => {
  const words = inLanguage(keysCatalogue)
  const { common, screens } = texts()
  const page = pageOf(route.value.query)
  const live = useLive(`keys ${page}`, (signal) =>
    call<Schemas['ApiKeyList']>('GET', '/api-keys', { query: { page, per_page: perPage }, signal }),
  )
  const [isCreating, setCreating] = useState(false)
  const [created, setCreated] = useState<NewKey>()
  const [asked, setAsked] = useState<Key>()
  const revoke = async ({ id }: Key) => {
    await callRaw('DELETE', `/api-keys/${id}`)
    announce(words.revoked)
    live.reload()
  }
  return html`<${Heading} title=${screens.keys}>
      ${
        live.data &&
        !isCreating &&
        html`<button type="button" class="button primary" onClick=${() => setCreating(true)}>${words.create}</button>`
      }
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    ${created && html`<${Created} key=${created.id} apiKey=${created} onDone=${() => setCreated(undefined)} />`}
    ${
      isCreating &&
      html`<${CreateForm}
        onCreated=${(key: NewKey) => {
          setCreating(false)
          setCreated(key)
          live.reload()
        }}
        onClose=${() => setCreating(false)}
      />`
    }
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        return html`<${Table}
            label=${screens.keys}
            columns=${[words.fields.name, words.fields.level, words.created, words.lastUsed, words.fields.expires_at, common.actions]}
          >
            ${data.map((key) => html`<${Row} key=${key.id} apiKey=${key} onRevoke=${() => setAsked(key)} />`)}
          </${Table}>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf('keys', { page: to === 1 ? undefined : String(to) })}
          />
          <p class="small">${words.revokedKeys} <a href=${addressOf('audit', { event: 'apikey.revoked' })}>${words.toAudit}</a></p>
          ${
            asked &&
            html`<${Confirm}
              isDestructive
              title=${words.confirmRevoke}
              action=${words.revoke}
              onConfirm=${() => revoke(asked)}
              onClose=${() => setAsked(undefined)}
            >
              <p>${words.revokeEffect(asked.attributes.name)}</p>
              ${asked.id === session.value!.key_id && html`<${Notice} tone="warn">${words.revokeOwn}</${Notice}>`}
            </${Confirm}>`
          }`
      }}
    </${Loaded}>`
}
