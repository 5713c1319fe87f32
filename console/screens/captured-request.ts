import { call, type Schemas } from '../api.ts'
import { formatDuration } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as requestsCatalogue from '../texts/requests.ts'
import { Badge, Copyable, ExactTime, Facts, Loaded } from '../ui/parts.ts'

type CapturedRequest = Schemas['SingleCapturedRequest']

export const loadRequest = (id: string, signal: AbortSignal) =>
  call<Schemas['SingleCapturedRequestResponse']>('GET', `/requests/${encodeURIComponent(id)}`, { signal })

/** The status that a request was answered with. */
export const StatusBadge = ({ code }: { code: number }) => {
  const { clientLeft } = inLanguage(requestsCatalogue)
  return html`<${Badge} status=${`${Math.trunc(code / 100)}xx`} label=${code === 499 ? `499 ${clientLeft}` : String(code)} />`
}

/** What a request was, in a few lines. */
export const RequestFacts = ({ request: { id: requestId, attributes } }: { request: CapturedRequest }) => {
  const words = inLanguage(requestsCatalogue)
  const { replay_of: original, document_ids: documents } = attributes
  return html`<${Facts}
    of=${[
      [words.id, html`<${Copyable} text=${requestId} />`],
      [words.received, html`<${ExactTime} at=${attributes.request_at} />`],
      [words.from, html`<span class="mono">${attributes.source_ip}</span>`],
      [words.channel, words.channels[attributes.channel]],
      [words.duration, formatDuration(attributes.duration_ms, locale())],
      [words.replayOf, original === null ? undefined : html`<a class="mono" href=${`requests/${original}`}>${original}</a>`],
      [
        words.documents(documents.length),
        documents.length === 0
          ? undefined
          : documents.map((id) => html`<div key=${id}><a class="mono" href=${`documents/${id}`}>${id}</a></div>`),
      ],
    ]}
  />`
}

/** The request that a document arrived with, as a part of the document's screen. */
export const CapturedRequest = ({ id }: { id: string }) => {
  const words = inLanguage(requestsCatalogue)
  const live = useLive(id, (signal) => loadRequest(id, signal), 0)
  if (live.error?.status === 404) return html`<p>${words.gone}</p>`
  return html`<${Loaded} live=${live}>
    ${() => {
      const { attributes } = live.data!.data
      return html`<p>
          <span class="mono">${attributes.http_method} ${attributes.uri}</span> <${StatusBadge} code=${attributes.status_code} />
        </p>
        <${RequestFacts} request=${live.data!.data} />
        <p><a href=${`requests/${id}`}>${words.show}</a></p>`
    }}
  </${Loaded}>`
}
