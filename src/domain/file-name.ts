import { extensionOfType } from './content-type.ts'

interface NamedComponent {
  compId: string
  contentType: string
}

// Digits alone end a date or a version: `Angebot 01.03.2026`.
const extension = /\.(?=[0-9]*[A-Za-z])([A-Za-z0-9]{1,16})$/

/** Returns the file extension of a component's name, or else the one of its content type. */
export const extensionOf = ({ compId, contentType }: NamedComponent): string =>
  extension.exec(compId)?.[1] ?? extensionOfType(contentType) ?? 'bin'

/** Appends a file extension to a name that has none. */
export const withExtension = (name: string, component: NamedComponent): string =>
  extension.test(name) ? name : `${name}.${extensionOf(component)}`
