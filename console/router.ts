import { signal } from '@preact/signals'

export interface Route {
  /** Relative to the console, without a slash at either end: `documents/01K...`. */
  path: string
  query: URLSearchParams
}

const base = new URL(document.baseURI).pathname

const readRoute = (): Route => ({
  path: location.pathname.startsWith(base) ? location.pathname.slice(base.length).replace(/\/+$/, '') : '',
  query: new URLSearchParams(location.search),
})

export const route = signal<Route>(readRoute())

let isFirstScreen = true
/** Returns true until another screen than that of the address that was opened has been shown. */
export const isFirst = (): boolean => isFirstScreen

/** Shows another screen. @param to relative to the console, with its query */
export const navigate = (to: string, { replace = false } = {}): void => {
  const url = new URL(to, document.baseURI)
  const isSameScreen = url.pathname === location.pathname
  if (replace) history.replaceState(null, '', url)
  else {
    history.pushState(null, '', url)
    isFirstScreen = false
  }
  route.value = readRoute()
  if (!isSameScreen) scrollTo(0, 0)
}

/** Returns an address with its query. Empty values are left out. */
export const addressOf = (path: string, query: Record<string, string | undefined>): string => {
  const entries = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries).toString()}`
}

/** Follows links to screens without loading the page again. */
export const startRouter = (): void => {
  addEventListener('popstate', () => {
    route.value = readRoute()
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = (event.target as Element | null)?.closest('a')
    if (!link || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return
    if (!link.pathname.startsWith(base) || link.hash !== '') return
    event.preventDefault()
    navigate(link.href)
  })
}

/** Returns the page of a list that an address names. */
export const pageOf = (query: URLSearchParams): number => Math.max(1, Math.trunc(Number(query.get('page') ?? 1)) || 1)
