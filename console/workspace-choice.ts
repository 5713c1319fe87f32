// The workspace that a page shows, if a person may use several. Each page keeps its own; a new one shows what was chosen last.

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

/** Shows another workspace. The page is loaded again: nothing of the previous workspace stays on it. */
export const chooseWorkspace = (workspace: string): void => {
  attempt(() => sessionStorage.setItem(name, workspace))
  attempt(() => localStorage.setItem(name, workspace))
  location.assign(new URL('overview', document.baseURI))
}
