import { useEffect, useState } from 'preact/hooks'
import { html, type Component } from '../html.ts'
import { texts } from '../preferences.ts'
import { Notice } from './parts.ts'

/** Returns a component that is loaded when it is shown first, so that the first screen does not wait for the others. */
export const lazy = <Props>(load: () => Promise<Component<Props>>): Component<Props> => {
  let loaded: Component<Props> | undefined
  return (props) => {
    const [component, setComponent] = useState({ loaded, hasFailed: false })
    useEffect(() => {
      if (loaded) return
      load().then(
        (screen) => {
          loaded = screen
          setComponent({ loaded, hasFailed: false })
        },
        () => setComponent({ loaded, hasFailed: true }),
      )
    }, [])
    const { common } = texts()
    if (component.hasFailed) return html`<${Notice} tone="bad">${common.notLoaded}</${Notice}>`
    if (!component.loaded) return html`<p class="loading" role="status">${common.loading} …</p>`
    return html`<${component.loaded} ...${props} />`
  }
}
