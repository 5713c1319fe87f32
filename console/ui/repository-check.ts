import { useState } from 'preact/hooks'
import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage, locale } from '../preferences.ts'
import * as repositoriesCatalogue from '../texts/repositories.ts'
import { announce, Badge, Confirm, Table } from './parts.ts'

type Report = Schemas['RepositoryCheck']

/** The status whose colour and mark the badge of a result has. */
const badges: Record<Schemas['RepositoryCheckStatus'], string> = {
  passed: 'delivered',
  failed: 'failed',
  not_offered: 'inactive',
  not_checked: 'inactive',
}

/** Asks if the documents of a check may be delivered, and runs it. */
export const ConfirmCheck = ({
  repository: { id, attributes },
  onReport,
  onClose,
}: {
  repository: Schemas['SingleRepository']
  onReport: (report: Report) => void
  onClose: () => void
}) => {
  const words = inLanguage(repositoriesCatalogue).check
  const [profile, setProfile] = useState<Report['profile']>('smoke')
  const destinations = attributes.connections.filter(({ status }) => status === 'active').map(({ destination_name: name }) => name)
  const run = async () => {
    const { data } = await call<Schemas['RepositoryCheckResponse']>('POST', `/repositories/${id}/check`, { body: { profile } })
    onReport(data)
    announce(words.counts(data))
  }
  return html`<${Confirm} title=${words.title(attributes.repo_id)} action=${words.run} onConfirm=${run} onClose=${onClose}>
    <p>${words.text([...new Set(destinations)].join(', '))}</p>
    <label class="choice">
      <input type="checkbox" checked=${profile === 'core'} onChange=${() => setProfile(profile === 'core' ? 'smoke' : 'core')} />
      ${words.more}
    </label>
  </${Confirm}>`
}

/** The result of a check, a row per check. What the checks say is English. */
export const CheckReport = ({ report }: { report: Report }) => {
  const words = inLanguage(repositoriesCatalogue).check
  const row = ({ id, title, status, message, remedy, duration_ms: ms }: Schemas['RepositoryCheckResult']) =>
    html`<tr key=${id} role="row">
      <td role="cell"><${Badge} status=${badges[status]} label=${words.statuses[status]} /></td>
      <td role="cell" class="wide-cell" lang="en">
        ${title} ${message !== null && html`<div class="small">${message}</div>`}
        ${remedy !== null && html`<div class="small">${remedy}</div>`}
      </td>
      <td role="cell" class="number">${ms.toLocaleString(locale())} ms</td>
    </tr>`
  return html`<section class="card" aria-labelledby="check">
    <h2 id="check">${words.heading}</h2>
    <p>${words.counts(report)}</p>
    ${report.left_behind.length > 0 && html`<p>${words.leftBehind}: ${report.left_behind.join(', ')}</p>`}
    <${Table} label=${words.heading} columns=${[words.result, words.of, words.time]} isCompact>${report.results.map(row)}</${Table}>
  </section>`
}
