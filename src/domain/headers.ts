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

/** The header that names the installations that a request has come from, separated by commas. */
export const hopsHeader = 'x-relay-hops'

/** Returns true if a header names this installation: the request is a delivery of its own. */
export const hasPassed = (hops: string, installationId: string): boolean => hops.split(',').some((hop) => hop.trim() === installationId)
