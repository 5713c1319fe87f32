import { useEffect, useState } from 'preact/hooks'
import { apiUrl, call, may, type Schemas } from '../api.ts'
import { formatBytes } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { commandOf, readQuery, valueOf } from '../query-string.ts'
import { navigate } from '../router.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import * as requestsCatalogue from '../texts/requests.ts'
import { BodyViewer } from '../ui/body-viewer.ts'
import { announce, Confirm, Heading, Loaded, Notice } from '../ui/parts.ts'
import { hasRedacted, Redacted } from '../ui/redacted.ts'
import { WithSettings } from '../ui/with-settings.ts'
import { loadRequest, RequestFacts, StatusBadge } from './captured-request.ts'

type Request = Schemas['SingleCapturedRequest']
type Kind = 'request' | 'response'

/** Returns why a request can certainly not be replayed. The relay may refuse a replay for other reasons. */
const obstacleOf = ({ attributes: { channel, request_body_truncated: isTruncated, document_ids: documentIds } }: Request) => {
  if (channel === 'bridge') return 'bridge'
  // The body of a request that created documents can be in their contents.
  return isTruncated && documentIds.length === 0 ? 'body' : undefined
}

const creates = new Set(['create', 'mcreate'])

/** Returns true for a create whose documents exist, unless they were deleted since: its replay is refused. */
const hasDocuments = ({ attributes: { uri, query_string: query, document_ids: documentIds } }: Request): boolean =>
  documentIds.length > 0 && creates.has(commandOf(uri, query).toLowerCase())

const titleOf = ({ http_method: method, uri, query_string: query }: Request['attributes']) =>
  [method, commandOf(uri, query), valueOf(query, 'docId')].filter(Boolean).join(' ')

/** Names and values, in which removed secrets are marked. */
const Pairs = ({ label, pairs }: { label: string; pairs: readonly (readonly [name: string, value: string])[] }) =>
  html`<table class="pairs" aria-label=${label}>
    <tbody>
      ${pairs.map(
        ([name, value], index) =>
          html`<tr key=${index}>
            <th scope="row">${name}</th>
            <td><${Redacted} text=${value} /></td>
          </tr>`,
      )}
    </tbody>
  </table>`

const Headers = ({ headers }: { headers: Record<string, string> }) => {
  const words = inLanguage(requestsCatalogue)
  return html`<h3>${words.headers}</h3>
    ${
      Object.keys(headers).length === 0
        ? html`<p class="quiet">${words.noHeaders}</p>`
        : html`<${Pairs} label=${words.headers} pairs=${Object.entries(headers)} />`
    }`
}

const Body = ({ request: { id, attributes }, kind }: { request: Request; kind: Kind }) => {
  const words = inLanguage(requestsCatalogue)
  const isRequest = kind === 'request'
  const contentType = isRequest ? attributes.request_content_type : attributes.response_content_type
  const sizeBytes = isRequest ? attributes.request_content_length : attributes.response_content_length
  const isTruncated = isRequest ? attributes.request_body_truncated : attributes.response_body_truncated
  const reason = isRequest ? attributes.request_body_truncation_reason : attributes.response_body_truncation_reason
  // The response to a HEAD declares the length of a body that it does not have.
  const isEmpty = sizeBytes === 0 || (!isRequest && attributes.http_method === 'HEAD')
  const path = `/requests/${id}/body/${kind}`
  const content = () => {
    if (isTruncated) return html`<p class="quiet">${words.notStored} ${words.reasons[reason ?? 'unknown']}</p>`
    if (isEmpty) return html`<p class="quiet">${words.emptyBody}</p>`
    return html`<${BodyViewer}
      path=${path}
      contentType=${contentType}
      sizeBytes=${sizeBytes}
      name=${words.body}
      gone=${words.bodyGone}
      isCaptured
    />`
  }
  const canDownload = !isTruncated && !isEmpty
  return html`<header class="card-head body-head">
      <h3>${words.body}</h3>
      ${!isEmpty && html`<span class="small">${words.size(contentType.split(';')[0]!, formatBytes(sizeBytes, locale()))}</span>`}
      ${
        canDownload &&
        html`<a class="button" download aria-label=${words.downloadBody[kind]} href=${apiUrl(path).href}>${words.download}</a>`
      }
    </header>
    ${content()}`
}

/** Says why the request was refused and what to do about it. */
const Refusal = ({ request: { attributes } }: { request: Request }) => {
  const { whatToDo, remedyOfRefusal } = inLanguage(remediesCatalogue)
  const { error_code: code, response_headers: headers } = attributes
  if (code === null) return null
  const remedy = remedyOfRefusal(code)
  const reason = headers['x-errordescription']?.replace(`${code}: `, '')
  return html`<${Notice} tone="warn">
    <p><code>${code}</code> ${reason}</p>
    ${remedy !== undefined && html`<p><strong>${whatToDo}:</strong> <${WithSettings} text=${remedy} /></p>`}
  </${Notice}>`
}

const Details = ({ request }: { request: Request }) => {
  const words = inLanguage(requestsCatalogue)
  const { attributes } = request
  const { command, parameters } = readQuery(attributes.query_string, attributes.code_page)
  const pairs = [...(command === '' ? [] : [[words.command, command] as const]), ...parameters]
  return html`<div class="columns">
    <section class="card" aria-labelledby="request">
      <h2 id="request">${words.request}</h2>
      <p class="mono break">${attributes.http_method} ${attributes.uri}</p>
      ${
        pairs.length > 0 &&
        html`<h3>${words.query}</h3>
          <${Pairs} label=${words.query} pairs=${pairs} />`
      }
      <${Headers} headers=${attributes.request_headers} />
      <${Body} request=${request} kind="request" />
    </section>
    <section class="card" aria-labelledby="answer">
      <h2 id="answer">${words.answer}</h2>
      <p>
        <${StatusBadge} code=${attributes.status_code} /> ${attributes.error_code !== null && html`<code>${attributes.error_code}</code>`}
      </p>
      <${Headers} headers=${attributes.response_headers} />
      <${Body} request=${request} kind="response" />
    </section>
  </div>`
}

const isRedacted = ({ attributes: { query_string: query, request_headers: sent, response_headers: answered } }: Request): boolean =>
  [query, ...Object.values(sent), ...Object.values(answered)].some(hasRedacted)

/** The replay that was started here last: its screen says so. */
let replayedId: string | undefined

const Replayed = ({ statusCode }: { statusCode: number }) => {
  const words = inLanguage(requestsCatalogue)
  const isAccepted = statusCode < 400
  const text = isAccepted ? words.replayed : words.replayRefused(statusCode)
  useEffect(() => announce(text), [text])
  return html`<${Notice} tone=${isAccepted ? 'good' : 'bad'}>${text}</${Notice}>`
}

export const RequestScreen = ({ id }: { id: string }) => {
  const words = inLanguage(requestsCatalogue)
  const [isAsked, setAsked] = useState(false)
  const live = useLive(id, (signal) => loadRequest(id, signal), 0)
  const replay = async () => {
    const { data } = await call<Schemas['ReplayResponse']>('POST', `/requests/${id}/replay`)
    replayedId = data.new_request_id
    navigate(`requests/${replayedId}`)
  }
  const attributes = live.data?.data.attributes
  const title = attributes ? titleOf(attributes) : words.request
  return html`<p class="back"><a href="requests">${words.back}</a></p>
    <${Heading} title=${title}>${attributes && html`<${StatusBadge} code=${attributes.status_code} />`}</${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        const request = live.data!.data
        const obstacle = obstacleOf(request)
        return html`${id === replayedId && html`<${Replayed} statusCode=${request.attributes.status_code} />`}
          ${
            may('admin') &&
            (obstacle
              ? html`<p class="quiet">${words.notReplayable[obstacle]}</p>`
              : html`<div class="actions">
                  <button type="button" class="button" onClick=${() => setAsked(true)}>${words.replay}</button>
                </div>`)
          }
          <${Refusal} request=${request} />
          <div class="card">
            <${RequestFacts} request=${request} />
            ${isRedacted(request) && html`<p class="small">${words.redactedNote}: <mark class="redacted">${texts().common.redacted}</mark></p>`}
          </div>
          <${Details} request=${request} />
          ${
            isAsked &&
            html`<${Confirm} title=${words.confirmReplay} action=${words.replay} onConfirm=${replay} onClose=${() => setAsked(false)}>
              <p>${words.replayEffect}</p>
              ${hasDocuments(request) && html`<p><strong>${words.replayExists}</strong></p>`}
              <p>${words.replaySignature}</p>
              <p>${words.replayRecord}</p>
            </${Confirm}>`
          }`
      }}
    </${Loaded}>`
}
