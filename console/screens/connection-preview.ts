import { useEffect, useRef, useState } from 'preact/hooks'
import { call, type Schemas } from '../api.ts'
import { businessObjectOf } from '../business-object.ts'
import { formatBytes, repositoryText } from '../format.ts'
import { html } from '../html.ts'
import { useLive, type Live } from '../live.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import { Badge, ErrorNotice, Notice, Table, Time } from '../ui/parts.ts'

type Preview = Schemas['ConnectionPreview']
type Previewed = Preview['documents'][number]

// An operator who types sees the result when the text stands still.
const stillMs = 300
const refreshMs = 10_000
const shortLength = 10

const useStill = <Value>(value: Value): Value => {
  const [still, setStill] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setStill(value), stillMs)
    return () => clearTimeout(timer)
  }, [value])
  return still
}

/** Applies settings to the newest documents of repositories, and keeps the result current. */
export const usePreview = (repositoryIds: string[], settings: Record<string, unknown>): Live<Preview> => {
  const key = useStill(JSON.stringify({ repository_ids: repositoryIds, settings }))
  const last = useRef<Preview>(undefined)
  const live = useLive(
    key,
    async (signal) => {
      const body = JSON.parse(key) as { repository_ids: string[] }
      if (body.repository_ids.length === 0) return { documents: [] }
      return (await call<Schemas['ConnectionPreviewResponse']>('POST', '/connections/preview', { body, signal, changesNothing: true })).data
    },
    refreshMs,
  )
  if (live.data) last.current = live.data
  // What was shown stays until the next answer: the page would jump otherwise.
  return { ...(last.current && { data: last.current }), ...live }
}

const Row = ({ document }: { document: Previewed }) => {
  const words = inLanguage(connectionsCatalogue)
  const object = businessObjectOf(document.metadata)
  return html`<tr role="row">
    <td role="cell" class="main-cell">
      <a class=${object === undefined ? 'mono' : ''} href=${`documents/${document.document_id}`}>${object ?? document.doc_id}</a>
      <span class="small"
        >${object !== undefined && html`<span class="mono">${document.doc_id}</span> · `}${repositoryText(document)} · ${document.comp_id} ·
        ${document.content_type} · ${formatBytes(document.size_bytes, locale())}</span
      >
    </td>
    <td role="cell"><${Time} at=${document.received_at} /></td>
    <td role="cell" class="wide-cell">
      ${
        document.unmet_condition === null
          ? html`<span class="mono">${document.path}</span>`
          : html`<span class="chip"
              ><${Badge} status="cancelled" label=${words.passedOver} /><span class="quiet"
                >${words.unmet[document.unmet_condition]}</span
              ></span
            >`
      }
    </td>
  </tr>`
}

/** Which of the newest documents a connection forwards, and the path that each gets. */
export const PreviewOf = ({
  live,
  hasRepositories,
  isInvalid = false,
}: {
  live: Live<Preview>
  hasRepositories: boolean
  /** True if the settings cannot be sent. */
  isInvalid?: boolean
}) => {
  const words = inLanguage(connectionsCatalogue)
  const [isWhole, setWhole] = useState(false)
  const documents = live.data?.documents
  const content = () => {
    if (!hasRepositories) return html`<p class="quiet">${words.previewChoose}</p>`
    if (isInvalid || live.error?.status === 422) return html`<${Notice} tone="warn">${words.previewInvalid}</${Notice}>`
    if (live.error) return html`<${ErrorNotice} error=${live.error} reload=${live.reload} />`
    if (!documents) return null
    if (documents.length === 0) return html`<p class="quiet">${words.previewEmpty}</p>`
    const matching = documents.filter(({ path }) => path !== null).length
    return html`<p role="status"><strong>${words.previewSummary(matching, documents.length)}</strong></p>
      <${Table} label=${words.preview} columns=${[words.document, words.received, words.result]}>
        ${documents
          .slice(0, isWhole ? undefined : shortLength)
          .map((document) => html`<${Row} key=${document.document_id} document=${document} />`)}
      </${Table}>
      ${
        !isWhole &&
        documents.length > shortLength &&
        html`<p class="more">
          <button type="button" class="button" onClick=${() => setWhole(true)}>${words.showAll(documents.length)}</button>
        </p>`
      }`
  }
  return html`<section class="card" aria-labelledby="preview">
    <h2 id="preview">${words.preview}</h2>
    <p class="quiet">${words.previewIntro}</p>
    ${content()}
  </section>`
}
