import mime from 'mime/lite'

/** Returns a content type without its parameters, in lower case; an empty string if there is none. */
export const mediaTypeOf = (contentType: string | null): string => (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()

interface NamedComponent {
  compId: string
  contentType: string
}

const extension = /\.([A-Za-z0-9]{1,16})$/

/** Returns the file extension of a component's name, or else the one of its content type. */
export const extensionOf = ({ compId, contentType }: NamedComponent): string =>
  extension.exec(compId)?.[1] ?? mime.getExtension(mediaTypeOf(contentType)) ?? 'bin'

/** Appends a file extension to a name that has none. */
export const withExtension = (name: string, component: NamedComponent): string =>
  extension.test(name) ? name : `${name}.${extensionOf(component)}`
