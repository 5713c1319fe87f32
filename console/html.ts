import htm from 'htm'
import { h, type ComponentChildren, type FunctionComponent, type VNode } from 'preact'

/** Makes elements of a template, as JSX does, in the browser and without a compiler. Texts in it are escaped. */
export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode

export type Children = ComponentChildren
export type Component<Props = object> = FunctionComponent<Props>
