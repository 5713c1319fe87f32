import { useEffect, useState } from 'preact/hooks'
import { html, type Component } from '../html.ts'
import { texts } from '../preferences.ts'
import { Notice, Skeleton } from './parts.ts'

/** A component whose module is loaded when it is shown first, or before. */
export type Lazy<Props = object> = Component<Props> & { preload(): Promise<unknown> }

/** Returns a component that is loaded when it is shown first, so that the first screen does not wait for the others. */
export const lazy = <Props>(load: () => Promise<Component<Props>>): Lazy<Props> => {
  let loaded: Component<Props> | undefined
  const preload = async () => {
    loaded ??= await load()
  }
  const Lazily: Component<Props> = (props) => {
    const [state, setState] = useState<{ loaded?: Component<Props> | undefined; hasFailed: boolean }>({ loaded, hasFailed: false })
    useEffect(() => {
      if (state.loaded) return
      preload().then(
        () => setState({ loaded, hasFailed: false }),
        () => setState({ hasFailed: true }),
      )
    }, [])
    const { common } = texts()
    if (state.hasFailed) return html`<${Notice} tone="bad">${common.notLoaded}</${Notice}>`
    if (!state.loaded) return html`<${Skeleton} />`
    return html`<${state.loaded} ...${props} />`
  }
  return Object.assign(Lazily, { preload })
}
