import { useState } from 'preact/hooks'
import { call, callRaw, may, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as migrationsCatalogue from '../texts/migrations.ts'
import { ErrorNotice, Loaded, Notice, Time } from './parts.ts'

const refreshMs = 2_000
// Older ones are in the list of the API.
const shownMax = 5
const verdicts = ['found', 'copied', 'equal', 'missing', 'different', 'damaged', 'failed'] as const
const verbs = { running: ['pause', 'cancel'], paused: ['resume', 'cancel'], completed: [], cancelled: [] } as const

type Migration = Schemas['DocumentMigration']

const One = ({ migration, reload }: { migration: Migration; reload: () => void }) => {
  const words = inLanguage(migrationsCatalogue)
  const [error, setError] = useState<ApiError>()
  const { attributes, id } = migration
  const { rows, status, mode, waiting_reason: reason, created_at: createdAt } = attributes
  const judged = verdicts.reduce((sum, verdict) => sum + attributes[verdict], 0)
  const counted = verdicts.filter((verdict) => attributes[verdict] > 0).map((verdict) => words.verdicts[verdict](attributes[verdict]))
  const change = (verb: string) =>
    callRaw('POST', `/document-migrations/${id}/${verb}`).then(reload, (thrown: unknown) => setError(toApiError(thrown)))
  return html`<li class="progress">
    <label>${words.states[status]}: ${words.progress(judged, rows)}<progress max=${rows} value=${judged}></progress></label>
    <p class="small">${words.modes[mode]}, <${Time} at=${createdAt} />${counted.length > 0 && html`: ${counted.join(', ')}`}</p>
    ${reason !== null && html`<${Notice} tone="warn">${words.waiting} <span lang="en">${reason}</span></${Notice}>`}
    ${error && html`<${ErrorNotice} error=${error} />`}
    ${
      may('admin') &&
      verbs[status].map(
        (verb) => html`<button key=${verb} type="button" class="button" onClick=${() => void change(verb)}>${words[verb]}</button>`,
      )
    }
  </li>`
}

/** The newest migrations of a repository, with their progress. */
export const DocumentMigrations = ({ repositoryId }: { repositoryId: string }) => {
  const words = inLanguage(migrationsCatalogue)
  const live = useLive(
    `migrations ${repositoryId}`,
    (signal) =>
      call<Schemas['DocumentMigrationList']>('GET', '/document-migrations', {
        query: { repository_id: repositoryId, per_page: shownMax },
        signal,
      }),
    refreshMs,
  )
  const draw = () =>
    html`<ul class="plain">
      ${live.data!.data.map((migration) => html`<${One} key=${migration.id} migration=${migration} reload=${live.reload} />`)}
      ${live.data!.data.length === 0 && html`<li class="quiet">${words.none}</li>`}
    </ul>`
  return html`<section class="card" aria-labelledby="migrations">
    <h2 id="migrations">${words.title}</h2>
    <${Loaded} live=${live}>${draw}</${Loaded}>
  </section>`
}
