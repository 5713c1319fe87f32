import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as settingsCatalogue from '../texts/settings.ts'
import { Badge, Time } from './parts.ts'

/** The workers of the installation, for administrators. */
export const Workers = () => {
  const words = inLanguage(settingsCatalogue).workers
  const live = useLive('workers', (signal) => call<Schemas['RelayResponse']>('GET', '/relay', { signal }))
  const workers = live.data?.data.attributes.workers
  if (!workers) return null
  const row = ({ name, version, build_id: build, started_at: started, last_seen_at: seen, is_running: isRunning }: Schemas['Worker']) =>
    html`<tr key=${name + started} role="row">
      <td role="cell" class="mono">${name}</td>
      <td role="cell"><${Badge} status=${isRunning ? 'healthy' : 'failing'} label=${isRunning ? words.running : words.gone} /></td>
      <td role="cell">${build === null ? version : `${version} (${build})`}</td>
      <td role="cell"><${Time} at=${started} /></td>
      <td role="cell"><${Time} at=${seen} /></td>
    </tr>`
  return html`<section class="card" aria-labelledby="workers">
    <h2 id="workers">${words.title}</h2>
    <p class="quiet">${words.hint}</p>
    ${
      workers.length === 0
        ? html`<p>${words.none}</p>`
        : html`<table role="table" class="list compact" aria-label=${words.title}>
            <thead role="rowgroup">
              <tr role="row">
                ${[words.name, words.state, words.version, words.started, words.seen].map(
                  (name) => html`<th key=${name} role="columnheader" scope="col">${name}</th>`,
                )}
              </tr>
            </thead>
            <tbody role="rowgroup">
              ${workers.map(row)}
            </tbody>
          </table>`
    }
  </section>`
}
