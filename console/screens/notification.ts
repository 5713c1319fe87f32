import { call, session, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { addressOf, route } from '../router.ts'
import { changed } from '../schema-form.ts'
import * as notificationsCatalogue from '../texts/notifications.ts'
import { choicesOf, linkTo, loadDestinations, type Destination } from '../ui/choose-destination.ts'
import { configuredScreen } from '../ui/configured-screen.ts'
import { ObjectForm, type FormProps } from '../ui/object-form.ts'
import { Badge, CursorPager, Loaded, Table, Time } from '../ui/parts.ts'
import { TestOutcome, useTargetTest } from '../ui/target-test.ts'
import { useForm } from '../ui/use-form.ts'
import { nameOfWorkspace } from '../workspace-choice.ts'
import { NotificationState } from './notifications.ts'

type Attributes = Schemas['Notification']['attributes']
type SentNotice = Schemas['Notice']

const noticesPerPage = 25

/** Types of the destinations that notices can be sent to. */
const types = ['email', 'webhook']

const NoticeRow = ({ notice: { attributes } }: { notice: SentNotice }) => {
  const words = inLanguage(notificationsCatalogue)
  const { status, data, created_at: createdAt, attempts, last_error: error, last_error_code: code, next_attempt_at: next } = attributes
  // Those of the operator's workspace are about all. The page is loaded again with another one (target).
  const other = data.workspace === nameOfWorkspace(session.value!) ? undefined : data.workspace
  const address = data.document && addressOf(`documents/${data.document.id}`, { workspace: other })
  return html`<tr role="row">
    <td role="cell"><${Badge} status=${status} label=${words.noticeStatus[status]} /></td>
    <td role="cell" class="wide-cell stack">
      ${address ? html`<a href=${address} target=${other && '_self'}>${data.summary}</a>` : data.summary}
      <span class="small mono">${[other, attributes.notice_type].filter(Boolean).join(' · ')}</span>
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
  const words = inLanguage(notificationsCatalogue)
  const before = route.value.query.get('before') ?? undefined
  const address = addressOf(`/notifications/${id}/notices`, { before, per_page: String(noticesPerPage) })
  const live = useLive(address, (signal) => call<Schemas['NoticeList']>('GET', address, { signal }))
  return html`<h2>${words.notices}</h2>
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        if (data.length === 0) return html`<p class="quiet">${words.noNotices}</p>`
        return html`<${Table} label=${words.notices} columns=${[words.status, words.notice, words.time, words.attempts]}>
            ${data.map((notice) => html`<${NoticeRow} key=${notice.id} notice=${notice} />`)}
          </${Table}>
          <${CursorPager} path=${`notifications/${id}`} next=${meta.next_cursor} />`
      }}
    </${Loaded}>`
}

const notificationFields = () => changed(requestFields('POST /notifications'), { destination_id: { input: 'choice' } })

const NotificationForm = ({ stored, destinations, ...rest }: FormProps<Attributes> & { destinations: readonly Destination[] }) => {
  const words = inLanguage(notificationsCatalogue)
  const form = useForm({
    fields: notificationFields(),
    stored: stored?.attributes,
    etag: stored?.etag,
    start: { events: Object.keys(words.choices.events) },
  })
  return html`<${ObjectForm}
    form=${form}
    resource="notifications"
    list="notifications"
    words=${words}
    stored=${stored}
    more=${{ destination_id: { options: choicesOf(types, destinations, stored?.attributes.destination_id) } }}
    ...${rest}
  />`
}

export const NotificationScreen = ({ id }: { id: string }) => {
  const words = inLanguage(notificationsCatalogue)
  const { state: tested, test } = useTargetTest(`/notifications/${id}/test`, words)
  return html`${configuredScreen<Attributes, Destination[]>(id, {
    resource: 'notifications',
    list: 'notifications',
    words,
    loadContext: loadDestinations,
    whyNot: (destinations) => (choicesOf(types, destinations).length === 0 ? words.noDestinations : undefined),
    state: (attributes) => html`<${NotificationState} of=${attributes} />`,
    buttons: html`<button type="button" class="button" disabled=${tested.isBusy} onClick=${() => void test()}>
      ${tested.isBusy ? `${words.testing} …` : words.test}
    </button>`,
    result: ({ destination_id: destinationId }, destinations) =>
      html`<${TestOutcome}
        state=${tested}
        words=${words}
        name=${destinations.find(({ id: each }) => each === destinationId)?.attributes.name ?? ''}
      />`,
    fields: notificationFields(),
    values: ({ destination_id: destinationId, events }, destinations) => ({
      destination_id: linkTo(destinationId, destinations),
      ...(!events.includes('source.silent') && { silence_hours: undefined }),
    }),
    form: (props, destinations) => html`<${NotificationForm} ...${props} destinations=${destinations} />`,
  })}
  ${id !== 'new' && html`<${Notices} id=${encodeURIComponent(id)} />`}`
}
