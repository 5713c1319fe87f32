import { useState } from 'preact/hooks'
import { call, callRaw, may, toApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { addressOf, navigate, route } from '../router.ts'
import * as formCatalogue from '../texts/form.ts'
import * as remediesCatalogue from '../texts/remedies.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import * as startCatalogue from '../texts/start.ts'
import { DocumentMigrations } from '../ui/document-migrations.ts'
import { Badge, Confirm, Facts, Heading, Loaded, Notice, Time } from '../ui/parts.ts'
import { loadRemovals, RemovalOf } from '../ui/removal.ts'
import { CheckReport, ConfirmCheck } from '../ui/repository-check.ts'
import { SentTestDocument, useTestDocument } from '../ui/test-document.ts'
import { WithSettings } from '../ui/with-settings.ts'
import { CertificateForm, Certificates } from './certificates.ts'
import { RepositoryForm } from './repository-form.ts'
import { SourceSetup } from './source-setup.ts'

const refusalsMax = 3

type Repository = Schemas['SingleRepository']

const ConfirmStatus = ({ repository, onDone, onClose }: { repository: Repository; onDone: () => void; onClose: () => void }) => {
  const words = inLanguage(repositoriesCatalogue)
  const { repo_id: repoId, status } = repository.attributes
  const isActive = status === 'active'
  const change = async () => {
    await callRaw('PATCH', `/repositories/${repository.id}`, { body: { status: isActive ? 'inactive' : 'active' } })
    onDone()
  }
  return html`<${Confirm}
    title=${isActive ? words.deactivateTitle(repoId) : words.activateTitle(repoId)}
    action=${isActive ? words.deactivate : words.activate}
    onConfirm=${change}
    onClose=${onClose}
  >
    <p>${isActive ? words.deactivateText : words.activateText}</p>
  </${Confirm}>`
}

const ConfirmDelete = ({ repository, onClose }: { repository: Repository; onClose: () => void }) => {
  const words = inLanguage(repositoriesCatalogue)
  const { repo_id: repoId, certificates } = repository.attributes
  const path = `/repositories/${repository.id}`
  const [isKept, setIsKept] = useState(true)
  const live = useLive(`removal ${repository.id}`, (signal) => loadRemovals(path, signal), 0)
  const remove = async () => {
    await callRaw('DELETE', path, { query: { keep_connections: isKept } })
    navigate('repositories')
  }
  const draw = () => html`<${RemovalOf} removals=${live.data!} isKept=${isKept} onKeep=${setIsKept} />`
  return html`<${Confirm} isDestructive title=${words.deleteTitle(repoId)} action=${words.remove} onConfirm=${remove} onClose=${onClose}>
    <p>${words.deleteText}</p>
    ${certificates.length > 0 && html`<p>${words.deleteCertificates(certificates.length)}</p>`}
    <${Loaded} live=${live}>${draw}</${Loaded}>
  </${Confirm}>`
}

/** The requests to the repository that were refused last, with what to do. */
const Refusals = ({ repoId }: { repoId: string }) => {
  const words = inLanguage(repositoriesCatalogue)
  const { whatToDo, remedyOfRefusal } = inLanguage(remediesCatalogue)
  const refused = { repo_id: repoId, status_class: '4xx' }
  const live = useLive(`refusals ${repoId}`, (signal) =>
    call<Schemas['CapturedRequestList']>('GET', '/requests', {
      query: { ...refused, without_checks: 'true', per_page: refusalsMax },
      signal,
    }),
  )
  const item = ({ id, attributes }: Schemas['CapturedRequest']) => {
    const { error_code: code, request_at: at, status_code: status } = attributes
    const remedy = code === null ? undefined : remedyOfRefusal(code)
    return html`<li key=${id}>
      <a href=${`requests/${id}`}><code>${code ?? status}</code></a> <${Time} at=${at} />
      ${remedy !== undefined && html`<div class="small">${whatToDo}: <${WithSettings} text=${remedy} /></div>`}
    </li>`
  }
  return html`<${Loaded} live=${live}>
    ${() => {
      const { data } = live.data!
      if (data.length === 0) return null
      return html`<section class="card" aria-labelledby="refusals">
        <header class="card-head">
          <h2 id="refusals">${words.refusals}</h2>
          <a class="button" href=${addressOf('requests', refused)}>${words.showRefusals}</a>
        </header>
        <ul class="plain refusals">
          ${data.map(item)}
        </ul>
      </section>`
    }}
  </${Loaded}>`
}

/** The earlier content server of a repository, with a test. */
const Upstream = ({ repository: { id, attributes } }: { repository: Repository }) => {
  const words = inLanguage(repositoriesCatalogue)
  const [result, setResult] = useState<Schemas['TestResult'] | 'running'>()
  const [docId, setDocId] = useState('')
  const test = async (event: Event) => {
    event.preventDefault()
    setResult('running')
    try {
      const query = { doc_id: docId.trim() || undefined }
      const { data } = await call<Schemas['TestResultResponse']>('POST', `/repositories/${id}/test-upstream`, { query })
      setResult(data)
    } catch (thrown) {
      const { message, details } = toApiError(thrown)
      setResult({ status: 'failed', message: details[0]?.message ?? message })
    }
  }
  return html`<code>${attributes.upstream!.url}</code>${' '}
    ${
      may('member') &&
      html`<form onSubmit=${(event: Event) => void test(event)}>
        <label for="upstream-doc-id">${words.upstreamDocId}</label>
        <input
          id="upstream-doc-id"
          type="text"
          maxlength="128"
          autocomplete="off"
          spellcheck=${false}
          aria-describedby="upstream-doc-id-help"
          value=${docId}
          onInput=${({ target }: { target: HTMLInputElement }) => setDocId(target.value)}
        />
        <p id="upstream-doc-id-help" class="small">${words.upstreamDocIdHint}</p>
        <button type="submit" class="button" disabled=${result === 'running'}>${words.upstreamTest}</button>
      </form>`
    }
    ${
      result !== undefined &&
      result !== 'running' &&
      html`<${Notice} tone=${result.status === 'success' ? 'good' : 'bad'}><span lang="en">${result.message}</span></${Notice}>`
    }`
}

const Show = ({ repository, reload }: { repository: Repository; reload: () => void }) => {
  const words = inLanguage(repositoriesCatalogue)
  const [asked, setAsked] = useState<'status' | 'check' | 'delete'>()
  const { id, attributes } = repository
  const { last_request_at: lastRequest, repo_id: repoId } = attributes
  const [report, setReport] = useState<Schemas['RepositoryCheck']>()
  const { sendHere, sending } = inLanguage(startCatalogue)
  const { state: sent, send } = useTestDocument()
  const isDelivered = attributes.status === 'active' && attributes.warnings.every(({ code }) => code !== 'not_connected')
  return html`${
      may('member') &&
      html`<div class="actions">
        <a class="button" href=${addressOf(`repositories/${id}`, { edit: '1' })}>${inLanguage(formCatalogue).edit}</a>
        <button type="button" class="button" onClick=${() => setAsked('status')}>
          ${attributes.status === 'active' ? words.deactivate : words.activate}
        </button>
        ${
          isDelivered &&
          html`<button type="button" class="button" disabled=${sent.isBusy} onClick=${() => void send(id)}>
            ${sent.isBusy ? `${sending} …` : sendHere}
          </button>`
        }
        ${
          isDelivered &&
          may('admin') &&
          html`<button type="button" class="button" onClick=${() => setAsked('check')}>${words.check.start}</button>`
        }
        ${may('admin') && html`<button type="button" class="button danger" onClick=${() => setAsked('delete')}>${words.remove}</button>`}
      </div>`
    }
    <${SentTestDocument} state=${sent} />
    ${report && html`<${CheckReport} report=${report} />`}
    ${attributes.warnings.map(
      ({ code }) =>
        html`<${Notice} key=${code} tone=${code === 'open_to_all' ? 'bad' : 'warn'}
          ><${WithSettings} text=${words.warningTexts[code]}
        /></${Notice}>`,
    )}
    <div class="columns">
      <section class="card" aria-label=${words.status}>
        <${Facts}
          of=${[
            [
              words.lastRequest,
              lastRequest === null
                ? words.noRequest
                : html`<${Time} at=${lastRequest} /> <a href=${addressOf('requests', { repo_id: repoId })}>${words.showRequests}</a>`,
            ],
            [
              words.signatures,
              html`${attributes.signature_verification ? words.required : words.notRequired}${' '}<span class="small"
                  >${words.activeCertificates(attributes.active_certificates)}</span
                >`,
            ],
            [words.upstreamName, attributes.upstream === null ? undefined : html`<${Upstream} repository=${repository} />`],
            [
              words.fields.home_destination_id,
              attributes.home_destination_id === null
                ? undefined
                : html`<a href=${`destinations/${attributes.home_destination_id}`}>${words.homeAfter(attributes.home_after_days)}</a>`,
            ],
            [words.fields.accepts_mcreate, attributes.accepts_mcreate ? undefined : words.mcreateRefused],
            [
              words.fields.signed_parameter_order,
              attributes.signed_parameter_order === 'fixed' ? undefined : words.choices.signed_parameter_order.any,
            ],
            [
              words.documents,
              html`${attributes.document_count.toLocaleString(locale())}${' '}<a href=${addressOf('documents', { repo_id: repoId })}
                  >${words.showDocuments}</a
                >`,
            ],
          ]}
        />
      </section>
      <section class="card" aria-labelledby="connections">
        <h2 id="connections">${words.connections}</h2>
        ${attributes.connections.length === 0 && html`<p class="quiet">${words.noConnections}</p>`}
        <ul class="plain">
          ${attributes.connections.map(
            ({ id: connectionId, name, destination_name: destination, status }) =>
              html`<li key=${`${connectionId} ${destination}`}>
                <${Badge} status=${status} label=${words.statuses[status]} />
                <a href=${`connections/${connectionId}`}>${name}</a> <span class="small">${words.toDestination(destination)}</span>
              </li>`,
          )}
        </ul>
      </section>
    </div>
    <${Refusals} repoId=${repoId} />
    ${attributes.upstream !== null && html`<${DocumentMigrations} repositoryId=${id} />`}
    <${SourceSetup} repository=${repository} />
    <${Certificates} repository=${repository} onChange=${reload} />
    ${asked === 'status' && html`<${ConfirmStatus} repository=${repository} onDone=${reload} onClose=${() => setAsked(undefined)} />`}
    ${asked === 'check' && html`<${ConfirmCheck} repository=${repository} onReport=${setReport} onClose=${() => setAsked(undefined)} />`}
    ${asked === 'delete' && html`<${ConfirmDelete} repository=${repository} onClose=${() => setAsked(undefined)} />`}`
}

const Stored = ({ id }: { id: string }) => {
  const words = inLanguage(repositoriesCatalogue)
  const { screens } = texts()
  const { query } = route.value
  const live = useLive(`repository ${id}`, async (signal) => {
    const response = await callRaw('GET', `/repositories/${encodeURIComponent(id)}`, { signal })
    return { ...((await response.json()) as Schemas['SingleRepositoryResponse']), etag: response.headers.get('etag') ?? '*' }
  })
  const shown = live.data?.data.attributes
  return html`<p class="back"><a href="repositories">${words.back}</a></p>
    <${Heading} title=${shown ? `${shown.repo_id} · ${shown.name}` : screens.repositories}>
      ${shown && html`<${Badge} status=${shown.status} label=${words.statuses[shown.status]} />`}
    </${Heading}>
    <${Loaded} live=${live}>
      ${() => {
        const { data, etag } = live.data!
        if (query.has('edit') && may('member')) return html`<${RepositoryForm} stored=${{ ...data, etag }} onSaved=${live.reload} />`
        if (query.has('add') && may('admin')) return html`<${CertificateForm} id=${id} onSaved=${live.reload} />`
        return html`<${Show} repository=${data} reload=${live.reload} />`
      }}
    </${Loaded}>`
}

const New = () => {
  const words = inLanguage(repositoriesCatalogue)
  return html`<p class="back"><a href="repositories">${words.back}</a></p>
    <${Heading} title=${words.create} />
    <${RepositoryForm} />`
}

export const RepositoryScreen = ({ id }: { id: string }) =>
  id === 'new' && may('member') ? html`<${New} />` : html`<${Stored} id=${id} />`
