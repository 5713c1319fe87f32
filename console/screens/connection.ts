import { useState } from 'preact/hooks'
import { call, callRaw, may, type Schemas } from '../api.ts'
import { defaultPathTemplate } from '../connection-fields.ts'
import { formatBytes } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale, texts } from '../preferences.ts'
import { requestFields } from '../request-schemas.ts'
import { addressOf, navigate, route } from '../router.ts'
import * as connectionsCatalogue from '../texts/connections.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as formCatalogue from '../texts/form.ts'
import { Badge, Confirm, Facts, Heading, Loaded } from '../ui/parts.ts'
import { WiringFigure } from '../ui/wiring-figure.ts'
import { layOutWiring, stateOf } from '../wiring.ts'
import { ConnectionForm } from './connection-form.ts'
import { PreviewOf, usePreview } from './connection-preview.ts'
import { ConfirmSwitch, heldText } from './connection-switch.ts'

type Connection = Schemas['Connection']

/** Returns the repositories of a connection that no other connection starts at. */
const unwiredBy = (connection: Connection, all: Connection[]) => {
  const others = new Set(all.filter(({ id }) => id !== connection.id).flatMap(({ repositories }) => repositories.map(({ id }) => id)))
  return connection.repositories.filter(({ id }) => !others.has(id))
}

const ConfirmDelete = ({ connection, onClose }: { connection: Connection; onClose: () => void }) => {
  const words = inLanguage(connectionsCatalogue)
  const live = useLive('all connections', (signal) => call<Schemas['ConnectionList']>('GET', '/connections', { signal }), 0)
  const remove = async () => {
    await callRaw('DELETE', `/connections/${connection.id}`)
    navigate('connections')
  }
  return html`<${Confirm}
    isDestructive
    title=${words.deleteTitle(connection.name)}
    action=${words.remove}
    onConfirm=${remove}
    onClose=${onClose}
  >
    <p>${words.deleteText}</p>
    ${connection.held_deliveries > 0 && html`<p><strong>${words.deleteHeld(heldText(connection))}</strong></p>`}
    <${Loaded} live=${live}>
      ${() => {
        const unwired = unwiredBy(connection, live.data!.data)
        return (
          unwired.length > 0 &&
          html`<p>${words.deleteUnwired}</p>
            <ul>
              ${unwired.map(({ id, repo_id: repoId, description }) => html`<li key=${id}><span class="mono">${repoId}</span> ${description}</li>`)}
            </ul>`
        )
      }}
    </${Loaded}>
  </${Confirm}>`
}

const Filter = ({ connection }: { connection: Connection }) => {
  const words = inLanguage(connectionsCatalogue)
  const { filter = {}, path_template: pathTemplate, properties = {}, on_resume: onResume = 'forward' } = connection.settings
  const { content_types: contentTypes, comp_ids: compIds, min_bytes: min, max_bytes: max, fields = {} } = filter
  const sizes = [
    ...(min === undefined ? [] : [words.atLeast(formatBytes(min, locale()))]),
    ...(max === undefined ? [] : [words.atMost(formatBytes(max, locale()))]),
  ]
  return html`<${Facts}
    of=${[
      [words.filter, Object.keys(filter).length > 0 ? undefined : words.noFilter],
      [words.fields['settings.filter.content_types'], contentTypes && html`<span class="mono">${contentTypes.join(', ')}</span>`],
      [words.fields['settings.filter.comp_ids'], compIds && html`<span class="mono">${compIds.join(', ')}</span>`],
      [words.size, sizes.length === 0 ? undefined : sizes.join(', ')],
      [
        words.fields['settings.filter.fields'],
        Object.keys(fields).length > 0 &&
          html`<ul class="names">
            ${Object.entries(fields).map(([name, values]) => html`<li key=${name}>${name}: <span class="mono">${[values].flat().join(', ')}</span></li>`)}
          </ul>`,
      ],
      [
        words.fields['settings.path_template'],
        html`<span class="mono">${pathTemplate ?? defaultPathTemplate(requestFields('POST /connections'))}</span>`,
      ],
      [
        words.fields['settings.properties'],
        Object.keys(properties).length === 0
          ? undefined
          : html`<ul class="names">
              ${Object.entries(properties).map(([name, value]) => html`<li key=${name}>${name}: <span class="mono">${value}</span></li>`)}
            </ul>`,
      ],
      [words.resumed, words.resumes[onResume]],
    ]}
  />`
}

const Show = ({ connection, reload }: { connection: Connection; reload: () => void }) => {
  const words = inLanguage(connectionsCatalogue)
  const { connector } = inLanguage(connectorFieldsCatalogue)
  const [asked, setAsked] = useState<'switch' | 'delete'>()
  const { id, repositories, destinations } = connection
  const ids = repositories.map((each) => each.id)
  const preview = usePreview(ids, connection.settings)
  return html`<div class="actions">
      ${
        may('member') &&
        html`<button type="button" class=${`button ${connection.is_active ? '' : 'primary'}`} onClick=${() => setAsked('switch')}>
            ${connection.is_active ? words.switchOff : words.switchOn}
          </button>
          <a class="button" href=${addressOf(`connections/${id}`, { edit: '1' })}>${inLanguage(formCatalogue).edit}</a>`
      }
      <a class="button" href=${addressOf('documents', { connection_id: id })}>${words.showDocuments}</a>
      ${may('admin') && html`<button type="button" class="button danger" onClick=${() => setAsked('delete')}>${words.remove}</button>`}
    </div>
    <${WiringFigure} wiring=${layOutWiring([connection])} />
    <div class="columns">
      <section class="card" aria-labelledby="route">
        <h2 id="route">${words.route}</h2>
        <${Facts}
          of=${[
            [
              words.from,
              html`<ul class="names">
                ${repositories.map(
                  ({ id: each, repo_id: repoId, description }) =>
                    html`<li key=${each}><a href=${`repositories/${each}`}>${repoId}</a> <span class="small">${description}</span></li>`,
                )}
              </ul>`,
            ],
            [
              words.to,
              html`<ul class="names">
                ${destinations.map(
                  ({ id: each, name, type }) =>
                    html`<li key=${each}><a href=${`destinations/${each}`}>${name}</a> <span class="small">${connector(type)}</span></li>`,
                )}
              </ul>`,
            ],
            [
              words.held,
              connection.held_deliveries === 0
                ? words.nothing
                : html`${heldText(connection)}${' '}<a href=${addressOf('documents', { connection_id: id, delivery_status: 'held' })}
                      >${words.showHeld}</a
                    >`,
            ],
          ]}
        />
      </section>
      <section class="card" aria-labelledby="settings">
        <h2 id="settings">${words.settings}</h2>
        <${Filter} connection=${connection} />
      </section>
    </div>
    <${PreviewOf} live=${preview} hasRepositories=${ids.length > 0} />
    ${asked === 'switch' && html`<${ConfirmSwitch} connection=${connection} onDone=${reload} onClose=${() => setAsked(undefined)} />`}
    ${asked === 'delete' && html`<${ConfirmDelete} connection=${connection} onClose=${() => setAsked(undefined)} />`}`
}

const Stored = ({ id }: { id: string }) => {
  const words = inLanguage(connectionsCatalogue)
  const { screens } = texts()
  const live = useLive(`connection ${id}`, async (signal) => {
    const response = await callRaw('GET', `/connections/${encodeURIComponent(id)}`, { signal })
    const { data } = (await response.json()) as Schemas['ConnectionResponse']
    return { connection: data, etag: response.headers.get('etag') ?? '*' }
  })
  const shown = live.data?.connection
  const state = shown && stateOf(shown)
  return html`<p class="back"><a href="connections">${words.back}</a></p>
    <${Heading} title=${shown?.name ?? screens.connections}>
      ${state && html`<${Badge} status=${state} label=${words.states[state]} />`}
    </${Heading}>
    <${Loaded} live=${live}>
      ${() =>
        route.value.query.has('edit') && may('member')
          ? html`<${ConnectionForm} stored=${live.data!} onSaved=${live.reload} />`
          : html`<${Show} connection=${live.data!.connection} reload=${live.reload} />`}
    </${Loaded}>`
}

const New = () => {
  const words = inLanguage(connectionsCatalogue)
  return html`<p class="back"><a href="connections">${words.back}</a></p>
    <${Heading} title=${words.create} />
    <${ConnectionForm} />`
}

export const ConnectionScreen = ({ id }: { id: string }) =>
  id === 'new' && may('member') ? html`<${New} />` : html`<${Stored} id=${id} />`
