import { useState } from 'preact/hooks'
import { call, callRaw, callVersioned, may, type Schemas } from '../api.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, navigate, route } from '../router.ts'
import * as formCatalogue from '../texts/form.ts'
import * as notificationsCatalogue from '../texts/notifications.ts'
import { loadDestinations, NewWithDestination, ofTypes, type Destination } from '../ui/choose-destination.ts'
import { announce, Badge, Confirm, CursorPager, ExactTime, Facts, Heading, Loaded, Notice, Table, Time } from '../ui/parts.ts'
import { TestOutcome, useTargetTest } from '../ui/target-test.ts'
import { NotificationForm } from './notification-form.ts'

const formWords = inLanguage(formCatalogue)
const notificationsWords = inLanguage(notificationsCatalogue)

type Notification = Schemas['Notification']
type SentNotice = Schemas['Notice']

const noticesPerPage = 25

interface Loading {
  notification: Notification
  etag: string
  destinations: Destination[]
}

const load = async (id: string, signal: AbortSignal): Promise<Loading> => {
  const [{ data, etag }, destinations] = await Promise.all([
    callVersioned<Schemas['NotificationResponse']>(`/notifications/${id}`, signal),
    loadDestinations(signal),
  ])
  return { notification: data, etag, destinations }
}

/** Types of the destinations that notices can be sent to. */
const types = ['email', 'webhook']

const NoticeRow = ({ notice: { attributes } }: { notice: SentNotice }) => {
  const words = notificationsWords()
  const { status, data, created_at: createdAt, attempts, last_error: error, last_error_code: code, next_attempt_at: next } = attributes
  return html`<tr role="row">
    <td role="cell"><${Badge} status=${status} label=${words.noticeStatus[status]} /></td>
    <td role="cell" class="wide-cell stack">
      ${data.document ? html`<a href=${`documents/${data.document.id}`}>${data.summary}</a>` : data.summary}
      <span class="small mono">${attributes.notice_type}</span>
      ${error !== null && status !== 'delivered' && html`<p class="small">${code !== null && html`<code>${code}</code>`} ${error}</p>`}
    </td>
    <td role="cell"><${Time} at=${createdAt} /></td>
    <td role="cell" data-label=${words.attempts}>
      ${attempts}
      ${status === 'pending' && next !== null && html`<span class="small">${words.nextAttempt} <${Time} at=${next} isPlanned /></span>`}
    </td>
  </tr>`
}

const Notices = ({ id }: { id: string }) => {
  const words = notificationsWords()
  const before = route.value.query.get('before') ?? undefined
  const address = addressOf(`/notifications/${id}/notices`, { before, per_page: String(noticesPerPage) })
  const here = `notifications/${id}`
  const live = useLive(address, (signal) => call<Schemas['NoticeList']>('GET', address, { signal }))
  return html`<h2>${words.notices}</h2>
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        if (data.length === 0) return html`<p class="quiet">${words.noNotices}</p>`
        return html`<${Table} label=${words.notices} columns=${[words.status, words.notice, words.time, words.attempts]}>
            ${data.map((notice) => html`<${NoticeRow} key=${notice.id} notice=${notice} />`)}
          </${Table}>
          <${CursorPager}
            first=${before && here}
            next=${meta.next_cursor === null ? undefined : addressOf(here, { before: meta.next_cursor })}
          />`
      }}
    </${Loaded}>`
}

const NotificationFacts = ({ notification: { attributes }, destinations }: { notification: Notification; destinations: Destination[] }) => {
  const words = notificationsWords()
  const destination = destinations.find(({ id }) => id === attributes.destination_id)
  return html`<section class="card" aria-label=${attributes.name}>
    <${Facts}
      of=${[
        [words.events, attributes.events.map((event) => words.incidents[event]).join(', ')],
        [
          words.destination,
          html`<a href=${`destinations/${attributes.destination_id}`}>${destination?.attributes.name ?? attributes.destination_id}</a>`,
        ],
        [words.quiet, formatDuration(attributes.quiet_seconds * 1_000, locale())],
        ...(attributes.events.includes('source.silent')
          ? [[words.silence, formatDuration(attributes.silence_hours * 3_600_000, locale())]]
          : []),
        [words.created, html`<${ExactTime} at=${attributes.created_at} />`],
        [words.changed, html`<${ExactTime} at=${attributes.updated_at} />`],
      ]}
    />
  </section>`
}

const Existing = ({ id }: { id: string }) => {
  const words = notificationsWords()
  const { screens } = texts()
  const form = formWords()
  const [version, setVersion] = useState({ number: 0, isSaved: false })
  const [isEditing, setEditing] = useState(false)
  const [isAsked, setAsked] = useState(false)
  const { state: tested, test } = useTargetTest(`/notifications/${id}/test`, words)
  const live = useLive(`${id} ${version.number}`, (signal) => load(encodeURIComponent(id), signal), 0)
  const loadAgain = (isSaved: boolean) => setVersion(({ number }) => ({ number: number + 1, isSaved }))
  const attributes = live.data?.notification.attributes
  const remove = async () => {
    await callRaw('DELETE', `/notifications/${id}`, { headers: { 'if-match': live.data!.etag } })
    navigate('notifications')
  }
  return html`<${Heading} title=${attributes?.name ?? screens.notifications}>
      ${
        attributes &&
        html`<${Badge}
          status=${attributes.is_active ? 'active' : 'inactive'}
          label=${attributes.is_active ? words.active : words.inactive}
        />`
      }
    </${Heading}>
    ${version.isSaved && !isEditing && html`<${Notice} tone="good">${form.saved}</${Notice}>`}
    <${Loaded} live=${live}>
      ${() => {
        const { notification, etag, destinations } = live.data!
        const saved = () => {
          announce(form.saved)
          setEditing(false)
          loadAgain(true)
        }
        return html`<div class="actions">
            ${
              may('member') &&
              html`<button type="button" class="button" disabled=${tested.isBusy} onClick=${() => void test()}>
                ${tested.isBusy ? `${words.testing} …` : words.test}
              </button>`
            }
            ${
              may('member') &&
              html`<button type="button" class="button" aria-expanded=${isEditing} onClick=${() => setEditing(!isEditing)}>
                ${form.edit}
              </button>`
            }
            ${may('admin') && html`<button type="button" class="button" onClick=${() => setAsked(true)}>${form.delete}</button>`}
          </div>
          <${TestOutcome} state=${tested} words=${words} />
          ${
            isEditing
              ? html`<${NotificationForm}
                  key=${version.number}
                  stored=${{ id, attributes: notification.attributes, etag }}
                  destinations=${ofTypes(types, destinations, notification.attributes.destination_id)}
                  reload=${() => loadAgain(false)}
                  onSaved=${saved}
                />`
              : html`<${NotificationFacts} notification=${notification} destinations=${destinations} />`
          }
          ${
            isAsked &&
            html`<${Confirm}
              isDestructive
              title=${words.confirmDelete}
              action=${form.delete}
              onConfirm=${remove}
              onClose=${() => setAsked(false)}
            >
              <p>${words.deleteEffect(notification.attributes.name)}</p>
            </${Confirm}>`
          }`
      }}
    </${Loaded}>
    <${Notices} id=${encodeURIComponent(id)} />`
}

const New = () => {
  const words = notificationsWords()
  return html`<${NewWithDestination}
    title=${words.createTitle}
    types=${types}
    none=${words.noDestinations}
    form=${(destinations: Destination[], reload: () => void) =>
      html`<${NotificationForm}
        destinations=${destinations}
        reload=${reload}
        onSaved=${(id: string) => navigate(`notifications/${id}`)}
      />`}
  />`
}

export const NotificationScreen = ({ id }: { id: string }) =>
  html`<p class="back"><a href="notifications">${notificationsWords().back}</a></p>
    ${id === 'new' ? html`<${New} />` : html`<${Existing} key=${id} id=${id} />`}`
