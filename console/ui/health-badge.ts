import type { Schemas } from '../api.ts'
import { healthOf } from '../destination-health.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as destinationsCatalogue from '../texts/destinations.ts'
import { Badge } from './parts.ts'

/** Status and circuit of a destination as one sign. */
export const HealthBadge = ({ attributes }: { attributes: Schemas['Destination']['attributes'] }) => {
  const health = healthOf(attributes)
  return html`<${Badge} status=${health} label=${inLanguage(destinationsCatalogue).health[health]} />`
}
