import { apiUrl, call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage } from '../preferences.ts'
import * as auditCatalogue from '../texts/audit.ts'
import { ExactTime, Table } from './parts.ts'

const shown = 10
const refreshMs = 60_000

/** The destinations that have a manifest, and since when. */
const Copies = ({ of: { copies, is_stamped: isStamped } }: { of: Schemas['ManifestAttributes'] }) => {
  const { withoutStamp } = inLanguage(auditCatalogue).manifests
  if (copies.length === 0) return '–'
  return html`<ul class="names">
    ${copies.map(
      ({ destination_id: id, destination_name: name, copied_at: at, is_stamped: hasStamp }) =>
        html`<li key=${id}>
          <a href=${`destinations/${id}`}>${name}</a>, <${ExactTime} at=${at} />${isStamped && !hasStamp && `, ${withoutStamp}`}
        </li>`,
    )}
  </ul>`
}

/** The signed manifests of the last days, with what is needed to verify them, and which destinations have a copy. */
export const Manifests = () => {
  const { title, hint, day, documents, files, parts, copies } = inLanguage(auditCatalogue).manifests
  const address = `/manifests?per_page=${shown}`
  const live = useLive(address, (signal) => call<Schemas['ManifestList']>('GET', address, { signal }), refreshMs)
  const manifests = live.data?.data ?? []
  if (manifests.length === 0) return null
  const link = (id: string, part: keyof typeof parts) =>
    html`<a key=${part} download href=${apiUrl(`/manifests/${id}/${part}`).href}>${parts[part]}</a>${' '}`
  return html`<section class="card" aria-labelledby="manifests">
    <h2 id="manifests">${title}</h2>
    <p class="quiet">${hint}</p>
    <${Table} label=${title} columns=${[day, documents, files, copies]}>
      ${manifests.map(
        ({ id, attributes }) =>
          html`<tr key=${id} role="row">
            <td role="cell">${id}</td>
            <td role="cell">${attributes.documents}</td>
            <td role="cell">
              ${(['file', 'signature', 'certificate'] as const).map((part) => link(id, part))}${attributes.is_stamped && link(id, 'timestamp')}
            </td>
            <td role="cell"><span class="cell-name">${copies}: </span><${Copies} of=${attributes} /></td>
          </tr>`,
      )}
    </${Table}>
  </section>`
}
