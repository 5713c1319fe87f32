import { useState } from 'preact/hooks'
import { callRaw, may, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import { addressOf } from '../router.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { announce, Badge, ErrorNotice, ExactTime, Facts } from './parts.ts'

type Enrichment = Schemas['DocumentEnrichment']

/** How far an enrichment of a document is, with the outcome of each step. */
const EnrichmentProgress = ({ of, documentId }: { of: Enrichment; documentId: string }) => {
  const words = inLanguage(enrichmentsCatalogue)
  const { status, steps, attempts, enrichment_id: id, enrichment_name: name, waits_until: waitsUntil, ends_at: endsAt } = of
  const isOpen = status !== 'skipped' && (status !== 'complete' || steps.some(({ error }) => error !== null))
  return html`<details open=${isOpen}>
    <summary>${name ?? words.deleted} <${Badge} status=${status} label=${words.counts[status]} /></summary>
    <table role="table" class="list compact" aria-label=${`${words.fields.steps}: ${name ?? words.deleted}`}>
      <thead role="rowgroup">
        <tr role="row">
          ${[words.step, words.status, words.time, words.problem].map(
            (column) => html`<th key=${column} role="columnheader" scope="col">${column}</th>`,
          )}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${steps.map(
          (step) =>
            html`<tr key=${step.name} role="row">
              <td role="cell" class="mono">${step.name}</td>
              <td role="cell"><${Badge} status=${step.status} label=${words.stepStatus[step.status]} /></td>
              <td role="cell"><${ExactTime} at=${step.at} /></td>
              <td role="cell" class="wide-cell" lang=${step.error === null ? undefined : 'en'}>${step.error ?? '–'}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    <${Facts}
      of=${[
        [words.tries, attempts],
        [words.waitsUntil, html`<${ExactTime} at=${waitsUntil} />`],
        [words.endsAt, status === 'pending' ? html`<${ExactTime} at=${endsAt} />` : undefined],
        [words.enrichment, html`<a href=${addressOf(`enrichments/${id}`, { document: documentId })}>${words.see}</a>`],
      ]}
    />
  </details>`
}

/** The business data of a document: what was found, and how far the calls are. */
export const BusinessData = ({ document: { id, attributes }, reload }: { document: Schemas['SingleDocument']; reload: () => void }) => {
  const words = inLanguage(enrichmentsCatalogue)
  const [problem, setProblem] = useState<ApiError>()
  const { fields, enrichments } = attributes
  if (enrichments.length === 0) return null
  const runAgain = async () => {
    try {
      await callRaw('POST', `/documents/${id}/enrich`)
      setProblem(undefined)
      announce(words.asked)
    } catch (thrown) {
      setProblem(toApiError(thrown))
    }
    reload()
  }
  const found = Object.entries(fields)
  return html`<section class="card" aria-labelledby="business-data">
    <header class="card-head">
      <h2 id="business-data">${words.businessData}</h2>
      ${may('member') && html`<button type="button" class="button" onClick=${() => void runAgain()}>${words.runAgain}</button>`}
    </header>
    ${problem && html`<${ErrorNotice} error=${problem} />`}
    ${found.length === 0 ? html`<p class="quiet">${words.noFields}</p>` : html`<${Facts} of=${found} />`}
    ${enrichments.map((each) => html`<${EnrichmentProgress} key=${each.enrichment_id} of=${each} documentId=${id} />`)}
  </section>`
}
