import { useState } from 'preact/hooks'
import { call, toApiError, type ApiError, type Schemas } from '../api.ts'
import { businessObjectOf } from '../business-object.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import { pretty } from '../pretty.ts'
import { route } from '../router.ts'
import * as enrichmentsCatalogue from '../texts/enrichments.ts'
import { announce, Badge, ErrorNotice, Loaded } from './parts.ts'

const documentsMax = 25

type Step = Schemas['TriedStep']

const requestText = (request: NonNullable<Step['request']>): string =>
  request.kind === 'e_invoice'
    ? '–'
    : request.kind === 'http'
      ? [`${request.method} ${request.url}`, ...(request.body === undefined ? [] : ['', pretty(request.body, 'application/json')])].join(
          '\n',
        )
      : JSON.stringify({ function: request.function, imports: request.imports, tables: request.tables }, null, 2)

const TriedStep = ({ step, number }: { step: Step; number: number }) => {
  const words = inLanguage(enrichmentsCatalogue)
  const id = `step-${number}`
  return html`<section class="card" aria-labelledby=${id}>
    <header class="card-head">
      <h3 id=${id}>${number}. ${step.name}</h3>
      <${Badge} status=${step.status} label=${words.stepStatus[step.status]} />
    </header>
    ${step.error !== null && html`<p lang="en">${step.error}</p>`}
    ${
      step.fields.length > 0 &&
      html`<table role="table" class="list compact" aria-label=${step.name}>
        <thead role="rowgroup">
          <tr role="row">
            ${[words.field, words.value].map((name) => html`<th key=${name} role="columnheader" scope="col">${name}</th>`)}
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${step.fields.map(
            ({ name, value, problem }) =>
              html`<tr key=${name} role="row">
                <td role="cell" class="mono">${name}</td>
                <td role="cell" class="wide-cell">${value ?? html`<span class="quiet" lang="en">${problem}</span>`}</td>
              </tr>`,
          )}
        </tbody>
      </table>`
    }
    ${step.request === null && html`<p class="quiet">${words.noCall}</p>`}
    ${
      step.request !== null &&
      html`<h4>${words.request}</h4>
        <pre class="code" tabindex="0">${requestText(step.request)}</pre>`
    }
    ${
      step.answer !== null &&
      html`<details>
        <summary>${words.answer}</summary>
        ${step.answer_truncated && html`<p class="small">${words.truncated}</p>`}
        <pre class="code" tabindex="0">${pretty(step.answer, 'application/json')}</pre>
      </details>`
    }
  </section>`
}

const loadDocuments = async (repoId: string | undefined, signal: AbortSignal): Promise<Schemas['Document'][]> => {
  const query = { per_page: documentsMax, include: 'metadata', ...(repoId !== undefined && { repo_id: repoId }) }
  return (await call<Schemas['DocumentList']>('GET', '/documents', { query, signal })).data
}

const nameOf = ({ attributes }: Schemas['Document']): string => {
  const { metadata, repo_id: repoId, doc_id: docId, comp_id: compId } = attributes
  const object = metadata && businessObjectOf(metadata)
  return `${object === undefined ? '' : `${object}, `}${repoId}/${docId}/${compId}`
}

/** Makes the calls of an enrichment for a document, and shows them. @param repoId of the only repository that it serves */
export const EnrichmentTry = ({ id, repoId }: { id: string; repoId: string | undefined }) => {
  const words = inLanguage(enrichmentsCatalogue)
  const asked = route.value.query.get('document')
  const [chosen, choose] = useState(asked ?? '')
  const [state, setState] = useState<{ isBusy: boolean; error?: ApiError; steps?: Step[] }>({ isBusy: false })
  const live = useLive(`try ${repoId ?? ''}`, (signal) => loadDocuments(repoId, signal), 0)
  const tryOn = async (documentId: string) => {
    setState({ isBusy: true })
    try {
      const { data } = await call<Schemas['EnrichmentTryResponse']>('POST', `/enrichments/${id}/try`, {
        body: { document_id: documentId },
      })
      setState({ isBusy: false, steps: data.steps })
      announce(words.tried)
    } catch (thrown) {
      setState({ isBusy: false, error: toApiError(thrown) })
    }
  }
  return html`<h2>${words.tryTitle}</h2>
    <p class="quiet">${words.tryText}</p>
    <${Loaded} live=${live}>
      ${() => {
        const documents = live.data!.map((document) => ({ id: document.id, name: nameOf(document) }))
        if (asked !== null && documents.every((document) => document.id !== asked)) documents.unshift({ id: asked, name: asked })
        if (documents.length === 0) return html`<p class="empty">${words.noDocuments}</p>`
        const documentId = chosen === '' ? documents[0]!.id : chosen
        return html`<div class="actions">
          <label class="label" for="try-document">${words.document}</label>
          <select id="try-document" value=${documentId} onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value)}>
            ${documents.map((document) => html`<option key=${document.id} value=${document.id}>${document.name}</option>`)}
          </select>
          <button type="button" class="button" disabled=${state.isBusy} onClick=${() => void tryOn(documentId)}>
            ${state.isBusy ? `${words.trying} …` : words.tryNow}
          </button>
        </div>`
      }}
    </${Loaded}>
    ${state.error && html`<${ErrorNotice} error=${state.error} />`}
    ${state.steps?.map((step, index) => html`<${TriedStep} key=${step.name} step=${step} number=${index + 1} />`)}`
}
