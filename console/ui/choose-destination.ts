import { call, type Schemas } from '../api.ts'
import { html, type Children } from '../html.ts'
import { useLive } from '../live.ts'
import { Heading, Loaded, Notice } from './parts.ts'

// What notifications and event subscriptions share: they are sent to a destination of some types.

export type Destination = Schemas['Destination']

const destinationsMax = 100

export const loadDestinations = async (signal: AbortSignal): Promise<Destination[]> =>
  (await call<Schemas['DestinationList']>('GET', '/destinations', { query: { per_page: destinationsMax }, signal })).data

/** @param chosen stays, whatever it is */
export const ofTypes = (types: readonly string[], destinations: readonly Destination[], chosen?: string): Destination[] =>
  destinations.filter(({ id, attributes }) => id === chosen || types.includes(attributes.connector_type))

/** A page with the form of something new, or that there is no destination for it. */
export const NewWithDestination = ({
  title,
  types,
  none,
  form,
}: {
  title: string
  types: readonly string[]
  none: string
  form: (destinations: Destination[], reload: () => void) => Children
}) => {
  const live = useLive('destinations', loadDestinations, 0)
  return html`<${Heading} title=${title} />
    <${Loaded} live=${live}>
      ${() => {
        const destinations = ofTypes(types, live.data!)
        return destinations.length === 0 ? html`<${Notice} tone="info">${none}</${Notice}>` : form(destinations, live.reload)
      }}
    </${Loaded}>`
}
