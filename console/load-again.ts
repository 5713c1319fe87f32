// One module without imports, which the page runs before all others: it works if others cannot be loaded.

const againMs = 5_000
// The state of an address for which the page has been loaded again. It stays when the page is loaded, and is not that of the next screen.
const loadedAgain = 'loaded again'

/** Returns true if the page has been loaded again for this address. */
export const isLoadedAgain = (): boolean => history.state === loadedAgain

/**
 * Loads the page again as soon as the relay answers, if that has not been done for this address. It is what helps when a module could not be
 * loaded: a browser remembers that, also of a module that the module imports, and does not ask for it again
 * (https://github.com/whatwg/html/issues/6768). A moment without a network is enough, or a relay of another version.
 */
export const loadPageAgain = async (abort?: AbortSignal): Promise<void> => {
  if (isLoadedAgain() || abort?.aborted) return
  const answer = await fetch(document.baseURI, { method: 'HEAD', cache: 'no-store', signal: abort ?? null }).catch(() => undefined)
  if (abort?.aborted) return
  if (!answer?.ok) {
    setTimeout(() => void loadPageAgain(abort), againMs)
    return
  }
  history.replaceState(loadedAgain, '')
  location.reload()
}

// That a script of the page, or a module that it imports, could not be loaded.
addEventListener('error', ({ target }) => target instanceof HTMLScriptElement && void loadPageAgain(), true)
