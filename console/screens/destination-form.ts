import { useState } from 'preact/hooks'
import { callRaw, may, type Schemas } from '../api.ts'
import { loadConnectorTypes } from '../connector-types.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, texts } from '../preferences.ts'
import * as connectorFieldsCatalogue from '../texts/connector-fields.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { DestinationForm } from '../ui/destination-form.ts'
import { Heading, Loaded, Notice } from '../ui/parts.ts'

const Kinds = ({ kinds }: { kinds: string[] }) => {
  const words = inLanguage(destinationsCatalogue)
  const { connector, purpose } = inLanguage(connectorFieldsCatalogue)
  return html`<p class="quiet">${words.chooseKind}</p>
    <ul class="kinds">
      ${kinds.map(
        (kind) =>
          html`<li key=${kind}>
            <a class="card" href=${`destinations/new?type=${kind}`}><strong>${connector(kind)}</strong><span>${purpose(kind)}</span></a>
          </li>`,
      )}
    </ul>`
}

/** Lets choose the kind of a new destination, and then shows its form. */
export const NewDestination = ({ kind }: { kind: string | null }) => {
  const words = inLanguage(destinationsCatalogue)
  const { connector } = inLanguage(connectorFieldsCatalogue)
  const live = useLive('connector-types', loadConnectorTypes, 0)
  const isAllowed = may('member')
  const title = kind === null ? words.create : words.createKind(connector(kind))
  return html`<p class="back">
      <a href=${kind === null ? 'destinations' : 'destinations/new'}>${kind === null ? words.back : words.backToKinds}</a>
    </p>
    <${Heading} key=${kind} title=${title} />
    ${!isAllowed && html`<${Notice} tone="info">${words.mayNot}</${Notice}>`}
    ${
      isAllowed &&
      html`<${Loaded} live=${live}>
        ${() => {
          const types = live.data!
          if (kind === null)
            return html`<${Kinds} kinds=${[...types].filter(([, { isAvailable }]) => isAvailable).map(([each]) => each)} />`
          const type = types.get(kind)
          if (!type) return html`<${Notice} tone="bad">${words.unknownKind}</${Notice}>`
          return html`<${DestinationForm} key=${kind} kind=${kind} type=${type} />`
        }}
      </${Loaded}>`
    }`
}

const loadEdited = async (id: string, signal: AbortSignal) => {
  const [types, response] = await Promise.all([loadConnectorTypes(), callRaw('GET', `/destinations/${encodeURIComponent(id)}`, { signal })])
  const { data } = (await response.json()) as Schemas['SingleDestinationResponse']
  return { types, data, etag: response.headers.get('etag') ?? '*' }
}

/** Shows the form of a stored destination. */
export const EditDestination = ({ id }: { id: string }) => {
  const words = inLanguage(destinationsCatalogue)
  const { screens } = texts()
  const [version, setVersion] = useState(0)
  const live = useLive(`${id} ${version}`, (signal) => loadEdited(id, signal), 0)
  const name = live.data?.data.attributes.name
  const isAllowed = may('member')
  return html`<p class="back"><a href=${`destinations/${id}`}>${name === undefined ? words.back : words.backToOne(name)}</a></p>
    <${Heading} title=${name === undefined ? screens.destinations : words.editOf(name)} />
    ${!isAllowed && html`<${Notice} tone="info">${words.mayNot}</${Notice}>`}
    ${
      isAllowed &&
      html`<${Loaded} live=${live}>
        ${() => {
          const { types, data, etag } = live.data!
          const { connector_type: kind, config, name: storedName, sign_in: signIn } = data.attributes
          const type = types.get(kind)
          if (!type) return html`<${Notice} tone="bad">${words.unknownKind}</${Notice}>`
          return html`<${DestinationForm}
            key=${version}
            kind=${kind}
            type=${type}
            stored=${{ id, name: storedName, config, signIn, etag }}
            reload=${() => setVersion(version + 1)}
          />`
        }}
      </${Loaded}>`
    }`
}
