import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import type { Option } from './fields.ts'

// What notifications and event subscriptions share: they are sent to a destination of some types.

export type Destination = Schemas['Destination']

const destinationsMax = 100

export const loadDestinations = async (signal: AbortSignal): Promise<Destination[]> =>
  (await call<Schemas['DestinationList']>('GET', '/destinations', { query: { per_page: destinationsMax }, signal })).data

/** Returns the destinations of some types as choices. @param chosen stays, whatever it is */
export const choicesOf = (types: readonly string[], destinations: readonly Destination[], chosen?: string): Option[] =>
  destinations
    .filter(({ id, attributes }) => id === chosen || types.includes(attributes.connector_type))
    .map(({ id, attributes }) => ({ value: id, label: attributes.name }))

/** Returns a link to a destination. */
export const linkTo = (id: string, destinations: readonly Destination[]) =>
  html`<a href=${`destinations/${id}`}>${destinations.find((each) => each.id === id)?.attributes.name ?? id}</a>`
