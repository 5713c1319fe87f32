import { call, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as removalCatalogue from '../texts/removal.ts'

type Removal = Schemas['Removal']

/** What the deletion of a destination or repository would take with it: with every connection, or with connections kept. */
export interface Removals {
  all: Removal
  kept: Removal
}

export const loadRemovals = async (path: string, signal: AbortSignal): Promise<Removals> => {
  const ask = (keepConnections: boolean) =>
    call<Schemas['RemovalResponse']>('DELETE', path, {
      query: { dry_run: true, keep_connections: keepConnections },
      signal,
      changesNothing: true,
    })
  const [all, kept] = await Promise.all([ask(false), ask(true)])
  return { all: all.data, kept: kept.data }
}

const Named = ({ text, names }: { text: string; names: { id: string; name: string; note?: string }[] }) =>
  names.length === 0
    ? null
    : html`<p>${text}</p>
        <ul>
          ${names.map(({ id, name, note }) => html`<li key=${id}><strong>${name}</strong>${note !== undefined && ` ${note}`}</li>`)}
        </ul>`

/** Says what a deletion takes with it, and offers to keep the connections that link others, if there are any. */
export const RemovalOf = ({ removals, isKept, onKeep }: { removals: Removals; isKept: boolean; onKeep: (isKept: boolean) => void }) => {
  const words = inLanguage(removalCatalogue)
  const removal = isKept ? removals.kept : removals.all
  return html`${
      removals.kept.unlinked_connections.length > 0 &&
      html`<label class="check">
        <input type="checkbox" checked=${isKept} onChange=${(event: Event) => onKeep((event.target as HTMLInputElement).checked)} />
        ${words.keep}
      </label>`
    }
    <${Named} text=${words.connections} names=${removal.removed_connections} />
    <${Named} text=${words.kept} names=${removal.unlinked_connections} />
    <${Named}
      text=${words.affected}
      names=${removal.affected_destinations.map(({ repo_ids: repoIds, ...each }) => ({ ...each, note: words.affectedOf(repoIds) }))}
    />
    <${Named}
      text=${words.unwired}
      names=${removal.unwired_repositories.map(({ id, name, repo_id: repoId }) => ({ id, name, note: `(${repoId})` }))}
    />
    <${Named} text=${words.notifications} names=${removal.removed_notifications} />
    ${removal.failed_documents_delivered > 0 && html`<p>${words.failed(removal.failed_documents_delivered)}</p>`}`
}
