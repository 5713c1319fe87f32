import { useState } from 'preact/hooks'
import { mostUrgentFirst, openOf } from '../../src/domain/delivery-states.ts'
import { documentWorkflowId } from '../../workflows/ids.ts'
import { apiUrl, call, callRaw, may, session, toApiError, type ApiError, type Schemas } from '../api.ts'
import { businessKeyOf, businessObjectOf } from '../business-object.ts'
import { formatBytes, formatDuration, repositoryText } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { locale, inLanguage, texts } from '../preferences.ts'
import { addressOf } from '../router.ts'
import * as documentCatalogue from '../texts/document.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import { BodyViewer } from '../ui/body-viewer.ts'
import { ConfirmBulkRetry } from '../ui/bulk-retry.ts'
import { BusinessData } from '../ui/business-data.ts'
import { CircuitCause } from '../ui/cause.ts'
import {
  announce,
  Badge,
  Confirm,
  Copyable,
  Disclosure,
  ErrorNotice,
  ExactTime,
  Facts,
  Heading,
  Loaded,
  Notice,
  Time,
} from '../ui/parts.ts'
import { TimelineFigure } from '../ui/timeline-figure.ts'
import { retryable, Verdict } from '../ui/verdict.ts'
import { CapturedRequest } from './captured-request.ts'

type Document = Schemas['SingleDocument']
type Delivery = Document['attributes']['deliveries'][number]
type Attempt = Schemas['DeliveryAttempt']

const attemptsMax = 100
const openStatuses = new Set(['pending', 'held', 'retrying'])
const refreshMs = { open: 2_000, closed: 10_000 }
// An operator ends the other waits elsewhere: by the switch of a connection, or in Temporal.
const hastened = new Set(['attempt', 'slot', 'circuit'])
const canHasten = ({ waiting_for: wait }: Delivery) => wait !== null && hastened.has(wait.reason)

const written = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

const pairsOf = (values: Record<string, unknown>) =>
  Object.entries(values)
    .map(([name, value]) => `${name}: ${written(value)}`)
    .join(', ')

/** What the target has answered: its body as text, and the rest by name. */
const Answer = ({ answer: { body, ...rest } }: { answer: Record<string, unknown> }) =>
  html`<p class="mono">${pairsOf(rest)}</p>
    ${body !== undefined && body !== '' && html`<pre class="code" tabindex="0">${written(body)}</pre>`}`

const Attempts = ({ attempts }: { attempts: Attempt[] }) => {
  const words = inLanguage(documentCatalogue)
  if (attempts.length === 0) return html`<p class="quiet">${words.noAttempts}</p>`
  return html`<table role="table" class="list compact" aria-label=${words.attempts}>
    <thead role="rowgroup">
      <tr role="row">
        ${[words.attempt, words.outcome, words.started, words.duration, words.sent, words.answer].map(
          (name) => html`<th key=${name} role="columnheader" scope="col">${name}</th>`,
        )}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${attempts.map(
        ({ id, attributes: { number, outcome, started_at: startedAt, duration_ms: ms, bytes_sent: sent, answer, error } }) =>
          html`<tr key=${id} role="row">
            <td role="cell">${number}</td>
            <td role="cell"><${Badge} status=${outcome} label=${words.outcomes[outcome]} /></td>
            <td role="cell"><${ExactTime} at=${startedAt} /></td>
            <td role="cell">${formatDuration(ms, locale())}</td>
            <td role="cell">${sent === null ? '–' : formatBytes(sent, locale())}</td>
            <td role="cell" class="wide-cell">
              ${error && html`<p><code>${error.code}</code> ${error.message}</p>`} ${answer && html`<${Answer} answer=${answer} />`}
              ${!error && !answer && '–'}
            </td>
          </tr>`,
      )}
    </tbody>
  </table>`
}

const DeliveryCard = ({
  delivery,
  attempts,
  onRetry,
  onAgain,
  onHasten,
}: {
  delivery: Delivery
  attempts: Attempt[]
  onRetry: () => void
  /** Undefined if the document cannot be delivered again. */
  onAgain: (() => void) | undefined
  onHasten: () => void
}) => {
  const words = inLanguage(documentCatalogue)
  const { whatToDo, remedy } = inLanguage(remediesCatalogue)
  const { deliveryStatus } = texts()
  const { destination_id: id, destination_name: name, status, last_error: error, ended_by: end } = delivery
  const { waiting_for: wait, next_attempt_at: next, late_data: late, receipt } = delivery
  return html`<section class="card" aria-labelledby=${`delivery-${id}`}>
    <header class="card-head">
      <h3 id=${`delivery-${id}`}><a href=${`destinations/${id}`}>${name}</a></h3>
      <${Badge} status=${status} label=${deliveryStatus[status]} />
      ${
        retryable(delivery) &&
        may('member') &&
        html`<button type="button" class="button" aria-label=${words.retryDelivery(name)} onClick=${onRetry}>${words.retry}</button>`
      }
      ${
        status === 'delivered' &&
        onAgain &&
        may('member') &&
        html`<button type="button" class="button" aria-label=${words.deliverAgainTo(name)} onClick=${onAgain}>
          ${words.deliverAgain}
        </button>`
      }
      ${
        canHasten(delivery) &&
        may('member') &&
        html`<button type="button" class="button" aria-label=${words.tryDelivery(name)} onClick=${onHasten}>${words.tryNow}</button>`
      }
    </header>
    ${
      (error || end) &&
      status !== 'delivered' &&
      html`<${Notice} tone=${status === 'failed' ? 'bad' : 'warn'}>
        ${error && html`<p>${error.code && html`<code>${error.code}</code>`} ${error.message}</p>`}
        ${end && html`<p>${words.endedBy[end]}</p>`}
        ${
          error &&
          status !== 'cancelled' &&
          wait?.reason !== 'circuit' &&
          html`<p><strong>${whatToDo}:</strong> ${remedy(error.code, name, status === 'failed' ? 'ended' : 'retried')}</p>`
        }
      </${Notice}>`
    }
    ${wait?.reason === 'circuit' && html`<${CircuitCause} id=${id} />`}
    <${Facts}
      of=${[
        [words.path, html`<span class="mono">${delivery.path}</span>`],
        [words.receipt, receipt && html`<span class="mono">${pairsOf({ sha256: receipt.sha256, ...receipt.target })}</span>`],
        [status === 'delivered' ? deliveryStatus.delivered : words.since, html`<${Time} at=${delivery.status_since} />`],
        [
          words.waiting,
          wait?.connection_id
            ? html`<a href=${`connections/${wait.connection_id}`}>${words.waits[wait.reason](name, wait.connection_name)}</a>`
            : wait && words.waits[wait.reason](name, wait.connection_name),
        ],
        [
          wait?.reason === 'circuit' ? words.nextTrial : words.nextAttempt,
          next === null ? undefined : html`<${Time} at=${next} isPlanned />`,
        ],
        [
          words.lateData,
          late &&
            html`${`${words.lateDataStatus[late.status]}, `}<${Time}
                at=${late.updated_at ?? late.found_at}
              />${late.error && `: ${late.error}`}`,
        ],
      ]}
    />
    ${
      // What has arrived is no news. Its attempts are there for those who ask.
      status === 'delivered'
        ? html`<details>
            <summary>${words.attempts}</summary>
            <${Attempts} attempts=${attempts} />
          </details>`
        : html`<${Attempts} attempts=${attempts} />`
    }
  </section>`
}

/** Returns the address of the document's workflow in the Temporal UI, if that is configured and the document has one. */
const workflowUrl = ({ id, attributes }: Document): string | undefined => {
  const { temporal_workflows_url: url, user_slug: user, workspace_slug: workspace } = session.value!
  const { repo_id: repoId, doc_id: docId, comp_id: compId, deliveries } = attributes
  const hasBegun = deliveries.some(({ status, attempts }) => attempts > 0 || (status !== 'held' && status !== 'cancelled'))
  // Who may look at the Temporal UI may also end a workflow there.
  if (url === null || !hasBegun || !may('member')) return undefined
  return url + encodeURIComponent(documentWorkflowId({ documentId: id, workspace: `${user}/${workspace}`, repoId, docId, compId }))
}

const DocumentFacts = ({ document: { attributes } }: { document: Document }) => {
  const words = inLanguage(documentCatalogue)
  const key = businessKeyOf(attributes.metadata)
  return html`<${Facts}
    of=${[
      [words.docId, html`<${Copyable} text=${attributes.doc_id} />`],
      [words.repository, repositoryText(attributes)],
      [words.component, attributes.comp_id === 'data' ? undefined : html`<span class="mono">${attributes.comp_id}</span>`],
      [words.fileName, attributes.file_name],
      [words.description, attributes.description],
      [words.businessObject, key === undefined ? undefined : html`<${Copyable} text=${key} />`],
      [words.documentType, attributes.metadata.ar_object],
      [words.type, attributes.content_type || '–'],
      [words.size, formatBytes(attributes.size_bytes, locale())],
      [words.received, html`<${ExactTime} at=${attributes.received_at} />`],
      [
        words.superseded,
        attributes.superseded_at === null
          ? undefined
          : html`<${ExactTime} at=${attributes.superseded_at} />${' '}
              <a href=${addressOf('requests', { doc_id: attributes.doc_id })}>${words.showRequests}</a>`,
      ],
      [
        words.legalHold,
        attributes.legal_hold ? html`<a href="holds">${attributes.legal_holds.map(({ reason }) => reason).join('; ')}</a>` : undefined,
      ],
      [words.origin, attributes.origin === 'source' ? undefined : words.fromUpstream],
      [words.acknowledgedAt, attributes.acknowledged_at === null ? undefined : html`<${ExactTime} at=${attributes.acknowledged_at} />`],
    ]}
  />`
}

/** The content of a document. */
const Preview = ({ document: { id, attributes } }: { document: Document }) => {
  if (!attributes.content_retained) return html`<p class="quiet">${inLanguage(documentCatalogue).notRetained}</p>`
  if (attributes.size_bytes === 0) return null
  return html`<${Disclosure} title=${inLanguage(documentCatalogue).preview}>
    ${() =>
      html`<${BodyViewer}
        path=${`/documents/${id}/content`}
        contentType=${attributes.content_type}
        sizeBytes=${attributes.size_bytes}
        name=${attributes.file_name ?? attributes.comp_id}
        isCaptured=${false}
      />`}
  </${Disclosure}>`
}

interface Loading {
  document: Document
  attempts: Attempt[]
  hasMoreAttempts: boolean
}

const load = async (id: string, signal: AbortSignal): Promise<Loading> => {
  const [document, attempts] = await Promise.all([
    call<Schemas['SingleDocumentResponse']>('GET', `/documents/${id}`, { signal }),
    call<Schemas['DeliveryAttemptList']>('GET', `/documents/${id}/attempts`, { query: { per_page: attemptsMax }, signal }),
  ])
  return { document: document.data, attempts: attempts.data, hasMoreAttempts: attempts.meta.total > attemptsMax }
}

export const DocumentScreen = ({ id }: { id: string }) => {
  const words = inLanguage(documentCatalogue)
  const { documentStatus, screens } = texts()
  const [isOpen, setOpen] = useState(true)
  const live = useLive(id, (signal) => load(encodeURIComponent(id), signal), isOpen ? refreshMs.open : refreshMs.closed)
  const deliveriesOf = live.data?.document.attributes.deliveries ?? []
  const isUnderWay = deliveriesOf.some(({ status }) => openStatuses.has(status))
  if (live.data && isUnderWay !== isOpen) setOpen(isUnderWay)
  // The delivery to retry, or all of them.
  const [asked, setAsked] = useState<Delivery | 'all' | undefined>()
  const [again, setAgain] = useState<Delivery>()
  const [isAcknowledging, setAcknowledging] = useState(false)
  const [problem, setProblem] = useState<ApiError>()

  const retry = async (what: Delivery | 'all') => {
    await callRaw('POST', `/documents/${id}${what === 'all' ? '' : `/deliveries/${what.destination_id}`}/retry`)
    announce(words.retried)
    live.reload()
  }

  // It uses up the retry budget like any other attempt, so no confirmation is asked for.
  const hasten = async (destinationId?: string) => {
    try {
      await callRaw('POST', `/documents/${id}${destinationId === undefined ? '' : `/deliveries/${destinationId}`}/attempt`)
      announce(words.hastened)
    } catch (thrown) {
      const error = toApiError(thrown)
      // The attempt has begun by itself.
      if (error.code !== 'nothing_to_retry') setProblem(error)
    }
    live.reload()
  }

  const acknowledge = async () => {
    await callRaw('POST', `/documents/${id}/acknowledge`)
    announce(words.acknowledged)
    live.reload()
  }

  const shown = live.data?.document.attributes
  const title = shown ? (businessObjectOf(shown.metadata) ?? `${screens.document} ${shown.doc_id}`) : screens.document
  return html`<p class="back"><a href="documents">${words.back}</a></p>
    <${Heading} title=${title}>
      ${
        live.data &&
        html`<${Badge} status=${live.data.document.attributes.status} label=${documentStatus[live.data.document.attributes.status]} />`
      }
    </${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        const { document, attempts, hasMoreAttempts } = live.data!
        const { deliveries, content_retained: isRetained, request_id: requestId } = document.attributes
        const workflow = workflowUrl(document)
        const failed = deliveries.filter(retryable)
        const waiting = deliveries.filter(canHasten)
        const open = openOf(deliveries)
        return html`${deliveries.length > 0 && html`<${Verdict} deliveries=${deliveries} />`}
          ${problem && html`<${ErrorNotice} error=${problem} />`}
          <div class="actions">
            ${
              waiting.length > 1 &&
              may('member') &&
              html`<button type="button" class="button" onClick=${() => void hasten()}>${words.tryAll}</button>`
            }
            ${
              failed.length > 0 &&
              may('member') &&
              html`<button type="button" class="button primary" onClick=${() => setAsked('all')}>${words.retryAll}</button>`
            }
            ${
              (document.attributes.status === 'failed' || document.attributes.status === 'discarded') &&
              document.attributes.acknowledged_at === null &&
              may('member') &&
              html`<button type="button" class="button" onClick=${() => setAcknowledging(true)}>${words.acknowledge}</button>`
            }
            ${isRetained && html`<a class="button" download href=${apiUrl(`/documents/${id}/content`).href}>${words.download}</a>`}
            ${
              may('admin') &&
              html`<a
                class="button"
                href=${addressOf('holds', { repo_id: document.attributes.repo_id, doc_id: document.attributes.doc_id })}
                >${words.putOnHold}</a
              >`
            }
            ${workflow !== undefined && html`<a class="button" href=${workflow} target="_blank" rel="noreferrer">${words.workflow}</a>`}
          </div>
          <div class="columns">
            <section class="card" aria-label=${screens.document}><${DocumentFacts} document=${document} /></section>
            <section class="card" aria-labelledby="timeline">
              <h2 id="timeline">${words.timeline}</h2>
              <${TimelineFigure} document=${document} attempts=${attempts} />
            </section>
          </div>
          <${BusinessData} document=${document} reload=${live.reload} />
          <h2>${words.deliveries}</h2>
          ${deliveries.length === 0 && html`<p class="empty">${words.noDeliveries}</p>`}
          ${mostUrgentFirst(deliveries).map(
            (delivery) =>
              html`<${DeliveryCard}
                key=${delivery.destination_id}
                delivery=${delivery}
                attempts=${attempts.filter(({ attributes }) => attributes.destination_id === delivery.destination_id)}
                onRetry=${() => setAsked(delivery)}
                onAgain=${isRetained && document.attributes.superseded_at === null ? () => setAgain(delivery) : undefined}
                onHasten=${() => void hasten(delivery.destination_id)}
              />`,
          )}
          ${hasMoreAttempts && html`<p class="small">${words.earlier(attemptsMax)}</p>`}
          <${Preview} document=${document} />
          <${Disclosure} title=${words.request}>${() => html`<${CapturedRequest} id=${requestId} />`}</${Disclosure}>
          ${
            isAcknowledging &&
            html`<${Confirm}
              title=${words.confirmAcknowledge}
              action=${words.acknowledge}
              onConfirm=${acknowledge}
              onClose=${() => setAcknowledging(false)}
            >
              <p>${words.confirmAcknowledgeText}</p>
              ${open.length > 0 && html`<p>${words.confirmAcknowledgeOpen(open.length, open.map(({ destination_name: name }) => name).join(', '))}</p>`}
            </${Confirm}>`
          }
          ${
            again &&
            html`<${ConfirmBulkRetry}
              target=${{ action: 'deliver', destinationId: again.destination_id, destinationName: again.destination_name, documentIds: [id] }}
              onStarted=${live.reload}
              onClose=${() => setAgain(undefined)}
            />`
          }
          ${
            asked &&
            html`<${Confirm}
              title=${words.confirmRetry}
              action=${words.retry}
              onConfirm=${() => retry(asked)}
              onClose=${() => setAsked(undefined)}
            >
              <p>${asked === 'all' ? words.confirmRetryAll(failed.length) : words.confirmRetryOne(asked.destination_name)}</p>
            </${Confirm}>`
          }`
      }}
    </${Loaded}>`
}
