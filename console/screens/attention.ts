import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { call, may, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { addressOf } from '../router.ts'
import * as attentionCatalogue from '../texts/attention.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import { BulkRetryProgress, ConfirmBulkRetry, type Target } from '../ui/bulk-retry.ts'
import { Facts, Heading, Loaded, Notice, Time } from '../ui/parts.ts'

type Group = Schemas['FailureGroup']['attributes']
type GroupList = Schemas['FailureGroupList']
type BulkRetry = Schemas['BulkRetry']
type DiscardedList = Schemas['DiscardedGroupList']
type Discarded = Schemas['DiscardedGroup']['attributes']

const groupsMax = 100
const bulkRetriesMax = 10
const refreshMs = 10_000
// Most retries succeed sooner. What lasts longer is an outage.
const longRetryingSeconds = 900

/** Ids of the bulk retries that were started here. They stay on the screen when they have ended. */
const started = signal<readonly string[]>([])

interface Loading {
  failed: GroupList
  retrying: GroupList
  cancelled: GroupList
  discarded: DiscardedList
  bulkRetries: BulkRetry[]
}

const load = async (abort: AbortSignal): Promise<Loading> => {
  const groups = (query: Record<string, string | number>) =>
    call<GroupList>('GET', '/failures', { query: { ...query, per_page: groupsMax }, signal: abort })
  const [failed, retrying, cancelled, discarded, bulkRetries] = await Promise.all([
    groups({ status: 'failed' }),
    groups({ status: 'retrying', min_age_seconds: longRetryingSeconds }),
    groups({ status: 'cancelled' }),
    call<DiscardedList>('GET', '/discarded', { query: { per_page: groupsMax }, signal: abort }),
    call<Schemas['BulkRetryList']>('GET', '/bulk-retries', { query: { per_page: bulkRetriesMax }, signal: abort }),
  ])
  return { failed, retrying, cancelled, discarded, bulkRetries: bulkRetries.data }
}

const codeOf = ({ error_code: code }: Group) => code ?? 'none'

const documentsOf = (group: Group) =>
  addressOf('documents', {
    destination_id: group.destination_id,
    delivery_status: group.status,
    error_code: codeOf(group),
    ...(group.status !== 'retrying' && { acknowledged: 'false' }),
  })

const GroupItem = ({ group, onAsk }: { group: Group; onAsk: (target: Target) => void }) => {
  const words = inLanguage(attentionCatalogue)
  const { whatToDo, remedy } = inLanguage(remediesCatalogue)
  const { destination_id: destinationId, destination_name: destinationName, error_code: code, status, last_message: message } = group
  const shownCode = code ?? words.noCode
  return html`<li class="group">
    <div class="card-head">
      <h3>
        ${code === null ? words.noCode : html`<code>${code}</code>`}
        <span class="count">${words.deliveries(group.documents)}</span>
      </h3>
      <span class="actions-end">
        <a class="button" href=${documentsOf(group)} aria-label=${words.showDocumentsOf(shownCode, destinationName)}
          >${words.showDocuments}</a
        >
        ${
          status !== 'retrying' &&
          !group.destination_deleted &&
          may('member') &&
          html`<button
            type="button"
            class="button primary"
            aria-label=${words.retryGroup(shownCode, destinationName)}
            onClick=${() => onAsk({ action: 'retry', destinationId, destinationName, errorCode: codeOf(group) })}
          >
            ${words.retryAll}
          </button>`
        }
      </span>
    </div>
    ${status !== 'cancelled' && html`<p><strong>${whatToDo}:</strong> ${remedy(code, destinationName, status === 'failed' ? 'group' : 'retried')}</p>`}
    <${Facts}
      of=${[
        [words.lastMessage, message ?? undefined],
        [words.oldest, html`<${Time} at=${group.oldest_at} />`],
        [words.newest, html`<${Time} at=${group.newest_at} />`],
      ]}
    />
  </li>`
}

/** The groups of one destination. */
const Destination = ({ groups, onAsk }: { groups: Group[]; onAsk: (target: Target) => void }) => {
  const words = inLanguage(attentionCatalogue)
  const { destination_id: destinationId, destination_name: destinationName, destination_deleted: isDeleted, status } = groups[0]!
  const headingId = `${status}-${destinationId}`
  return html`<section class="card" aria-labelledby=${headingId}>
    <header class="card-head">
      <h3 id=${headingId} class="card-title">
        ${isDeleted ? `${destinationName} (${words.deleted})` : html`<a href=${`destinations/${destinationId}`}>${destinationName}</a>`}
      </h3>
      ${
        groups.length > 1 &&
        status === 'failed' &&
        may('member') &&
        html`<button
          type="button"
          class="button"
          aria-label=${words.retryAllOf(destinationName)}
          onClick=${() => onAsk({ action: 'retry', destinationId, destinationName })}
        >
          ${words.retryAll}
        </button>`
      }
    </header>
    <ul class="groups">
      ${groups.map((group) => html`<${GroupItem} key=${group.error_code} group=${group} onAsk=${onAsk} />`)}
    </ul>
  </section>`
}

const Groups = ({
  title,
  hint,
  list: { data, meta },
  onAsk,
}: {
  title: string
  hint?: string
  list: GroupList
  onAsk: (target: Target) => void
}) => {
  const words = inLanguage(attentionCatalogue)
  if (data.length === 0) return null
  const byDestination = Map.groupBy(
    data.map(({ attributes }) => attributes),
    ({ destination_id: id }) => id,
  )
  return html`<h2>${title}</h2>
    ${hint !== undefined && html`<p class="quiet">${hint}</p>`}
    ${meta.total > data.length && html`<${Notice} tone="info">${words.more(data.length, meta.total)}</${Notice}>`}
    ${[...byDestination].map(([id, groups]) => html`<${Destination} key=${id} groups=${groups} onAsk=${onAsk} />`)}`
}

/** The discarded documents of one repository. */
const DiscardedItem = ({ group, onAsk }: { group: Discarded; onAsk: (target: Target) => void }) => {
  const words = inLanguage(attentionCatalogue)
  const { repo_id: repoId, repository_id: id, is_connected: isConnected, documents, newest_at: at } = group
  const state = id === null ? words.repositoryDeleted : isConnected ? words.nowConnected : words.notConnected
  const name = words.discardedOf(repoId)
  const ask = (action: 'replay' | 'acknowledge', text: string) =>
    html`<button type="button" class="button" aria-label=${`${text}: ${repoId}`} onClick=${() => onAsk({ action, repoId })}>
      ${text}
    </button>`
  return html`<section class="card" aria-label=${name}>
    <div class="card-head">
      <h3>
        ${id === null ? name : html`<a href=${`repositories/${id}`}>${name}</a>`}
        <span class="count">${words.documents(documents)}</span>
      </h3>
      <span class="actions-end">
        <a
          class="button"
          href=${addressOf('documents', { status: 'discarded', acknowledged: 'false', repo_id: repoId })}
          aria-label=${words.showDiscardedOf(repoId)}
          >${words.showDocuments}</a
        >
        ${may('member') && ask('acknowledge', words.acknowledgeAll)} ${isConnected && may('admin') && ask('replay', words.replayAll)}
        ${
          id !== null &&
          !isConnected &&
          may('member') &&
          html`<a
            class="button primary"
            href=${addressOf('connections/new', { repository: id })}
            aria-label=${`${words.connect}: ${repoId}`}
            >${words.connect}</a
          >`
        }
      </span>
    </div>
    <p>${state}</p>
    <${Facts} of=${[[words.newest, html`<${Time} at=${at} />`]]} />
  </section>`
}

const DiscardedDocuments = ({ list: { data, meta }, onAsk }: { list: DiscardedList; onAsk: (target: Target) => void }) => {
  const words = inLanguage(attentionCatalogue)
  if (data.length === 0) return null
  return html`<h2>${words.discarded}</h2>
    <p class="quiet">${words.discardedHint}</p>
    ${meta.total > data.length && html`<${Notice} tone="info">${words.more(data.length, meta.total)}</${Notice}>`}
    ${data.map(({ id, attributes }) => html`<${DiscardedItem} key=${id} group=${attributes} onAsk=${onAsk} />`)}`
}

/** The bulk retries that run, and those that were started here, with what they retry. */
const BulkRetries = ({ list, onEnd }: { list: BulkRetry[]; onEnd: () => void }) => {
  const words = inLanguage(attentionCatalogue)
  const running = list.filter(({ attributes: { status } }) => status === 'running').map(({ id }) => id)
  const ids = [...new Set([...started.value, ...running])]
  if (ids.length === 0) return null
  return html`<section class="card" aria-label=${words.running}>
    ${ids.map((id) => html`<${BulkRetryProgress} key=${id} id=${id} onEnd=${onEnd} />`)}
  </section>`
}

export const AttentionScreen = () => {
  const words = inLanguage(attentionCatalogue)
  const { screens } = texts()
  const [asked, setAsked] = useState<Target>()
  const live = useLive('attention', load, refreshMs)
  return html`<${Heading} title=${screens.attention} />
    <p class="quiet">${words.intro}</p>
    <${Loaded} live=${live}>
      ${() => {
        const { failed, retrying, cancelled, discarded, bulkRetries } = live.data!
        const isEmpty = [failed, retrying, cancelled, discarded].every(({ data }) => data.length === 0)
        return html`${isEmpty && html`<${Notice} tone="good">${words.empty}</${Notice}>`}
          <${BulkRetries} list=${bulkRetries} onEnd=${live.reload} />
          <${Groups} title=${words.failed} list=${failed} onAsk=${setAsked} />
          <${DiscardedDocuments} list=${discarded} onAsk=${setAsked} />
          <${Groups} title=${words.retrying} hint=${words.retryingHint} list=${retrying} onAsk=${setAsked} />
          <${Groups} title=${words.cancelled} hint=${words.cancelledHint} list=${cancelled} onAsk=${setAsked} />
          ${
            asked &&
            html`<${ConfirmBulkRetry}
              target=${asked}
              onStarted=${(id: string) => {
                started.value = [...started.value, id]
              }}
              onClose=${() => setAsked(undefined)}
            />`
          }`
      }}
    </${Loaded}>`
}
