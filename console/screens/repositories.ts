import { call, may, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import { addressOf, navigate, pageOf, route } from '../router.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import { Badge, Heading, Loaded, Pager, Table, Time } from '../ui/parts.ts'

type Repository = Schemas['Repository']

const perPage = 50
const path = 'repositories'

/** The conditions that an operator should know, in a word each. */
const Warnings = ({ of }: { of: Repository['attributes']['warnings'] }) => {
  const words = inLanguage(repositoriesCatalogue)
  return html`<ul class="chips">
    ${of.map(
      ({ code }) =>
        html`<li key=${code}>
          <span class="badge warn"
            ><svg class="mark" viewBox="0 0 16 16" aria-hidden="true"><path d="M8 2.500l6 11H2zM8 6.500v3.500M8 11.700v.6" /></svg>${
              words.warnings[code]
            }</span
          >
        </li>`,
    )}
  </ul>`
}

const Row = ({ repository: { id, attributes } }: { repository: Repository }) => {
  const words = inLanguage(repositoriesCatalogue)
  return html`<tr role="row">
    <td role="cell"><${Badge} status=${attributes.status} label=${words.statuses[attributes.status]} /></td>
    <td role="cell" class="main-cell">
      <a href=${`repositories/${id}`}>${attributes.repo_id}</a> <span class="small">${attributes.name}</span>
    </td>
    <td role="cell">
      <span class="cell-name">${words.lastRequest}: </span>${
        attributes.last_request_at === null
          ? html`<span class="quiet">${words.noRequest}</span>`
          : html`<${Time} at=${attributes.last_request_at} />`
      }
    </td>
    <td role="cell">
      <span class="cell-name">${words.signatures}: </span>${attributes.signature_verification ? words.required : words.notRequired}${' '}
      <span class="small">${words.activeCertificates(attributes.active_certificates)}</span>
    </td>
    <td role="cell">
      <a href=${addressOf('documents', { repo_id: attributes.repo_id })}>${words.documentCount(attributes.document_count)}</a>
    </td>
    <td role="cell"><${Warnings} of=${attributes.warnings} /></td>
  </tr>`
}

export const RepositoriesScreen = () => {
  const words = inLanguage(repositoriesCatalogue)
  const { screens, common } = texts()
  const { query } = route.value
  const page = pageOf(query)
  const status = query.get('status') ?? ''
  const live = useLive(`repositories ${page} ${status}`, (signal) =>
    call<Schemas['RepositoryList']>('GET', '/repositories', { query: { page, per_page: perPage, status }, signal }),
  )
  const filter = (event: Event) => navigate(addressOf(path, { status: (event.target as HTMLSelectElement).value }))
  return html`<${Heading} title=${screens.repositories}>
      ${may('member') && html`<a class="button primary" href="repositories/new">${words.create}</a>`}
    </${Heading}>
    <p class="quiet">${words.intro}</p>
    <div class="filters">
      <label class="field"
        ><span>${words.status}</span>
        <select value=${status} onChange=${filter}>
          <option value="">${common.all}</option>
          ${(['active', 'inactive'] as const).map((each) => html`<option key=${each} value=${each}>${words.statuses[each]}</option>`)}
        </select></label
      >
    </div>
    <${Loaded} live=${live}>
      ${() => {
        const { data, meta } = live.data!
        if (data.length === 0) return html`<p class="empty">${status === '' ? words.empty : words.noneWithStatus}</p>`
        return html`<${Table}
            label=${screens.repositories}
            columns=${[words.status, words.fields.repo_id, words.lastRequest, words.signatures, words.documents, words.warning]}
          >
            ${data.map((repository) => html`<${Row} key=${repository.id} repository=${repository} />`)}
          </${Table}>
          <${Pager}
            page=${page}
            perPage=${perPage}
            total=${meta.total}
            addressOfPage=${(to: number) => addressOf(path, { status, page: to === 1 ? undefined : String(to) })}
          />`
      }}
    </${Loaded}>`
}
