import { useEffect, useState } from 'preact/hooks'
import { html, type Component } from '../html.ts'
import { isLoadedAgain, loadPageAgain } from '../load-again.ts'
import { texts } from '../preferences.ts'
import { Notice, Skeleton } from './parts.ts'

/** A component whose module is loaded when it is shown first, or before. */
export type Lazy<Props = object> = Component<Props> & { preload(): Promise<unknown> }

/**
 * Returns a component that is loaded when it is shown first, so that the first screen does not wait for the others. If that fails, the page is
 * loaded again, once for each address.
 */
export const lazy = <Props>(load: () => Promise<Component<Props>>): Lazy<Props> => {
  let loaded: Component<Props> | undefined
  const preload = async () => {
    loaded ??= await load()
  }
  const Lazily: Component<Props> = (props) => {
    const [state, setState] = useState<{ loaded?: Component<Props> | undefined; hasFailed: boolean }>({ loaded, hasFailed: false })
    useEffect(() => {
      if (state.loaded) return undefined
      const leaving = new AbortController()
      preload().then(
        () => setState({ loaded, hasFailed: false }),
        () => {
          setState({ hasFailed: true })
          void loadPageAgain(leaving.signal)
        },
      )
      return () => leaving.abort()
    }, [])
    const { common } = texts()
    if (state.hasFailed) {
      if (isLoadedAgain()) return html`<${Notice} tone="bad">${common.notLoaded}</${Notice}>`
      return html`<${Notice} tone="warn">${common.offline} ${common.keepsTrying}</${Notice}>`
    }
    if (!state.loaded) return html`<${Skeleton} />`
    return html`<${state.loaded} ...${props} />`
  }
  return Object.assign(Lazily, { preload })
}
