// The workspace that a page shows, if a person may use several. Each page keeps its own; a new one shows what was chosen last.

import { signal } from '@preact/signals'

const name = 'relay-workspace'

// A browser may refuse storage.
const attempt = <Value>(use: () => Value): Value | undefined => {
  try {
    return use()
  } catch {
    return undefined
  }
}

export const nameOfWorkspace = ({ user_slug: user, workspace_slug: workspace }: { user_slug: string; workspace_slug: string }): string =>
  `${user}/${workspace}`

export const chosenWorkspace = (): string => attempt(() => sessionStorage.getItem(name) ?? localStorage.getItem(name)) ?? ''

const keep = (workspace: string): void => {
  attempt(() => sessionStorage.setItem(name, workspace))
  attempt(() => localStorage.setItem(name, workspace))
}

/** The workspace that the link of this page has named, which its session may not give access to. */
export const linkedWorkspace = signal<string | undefined>()

/** Shows the workspace that the address of a new page names, if it names one. @returns its query without it */
export const takeWorkspace = (query: URLSearchParams): URLSearchParams => {
  const rest = new URLSearchParams(query)
  const wanted = rest.get('workspace')
  if (wanted !== null) keep(wanted)
  linkedWorkspace.value = wanted ?? undefined
  rest.delete('workspace')
  return rest
}

/** Shows another workspace. The page is loaded again: nothing of the previous workspace stays on it. */
export const chooseWorkspace = (workspace: string): void => {
  keep(workspace)
  location.assign(new URL('overview', document.baseURI))
}
