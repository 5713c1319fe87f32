import mime from 'mime/lite'

/** What a content type says without its parameters, in lower case; empty where there is none. */
export const mediaTypeOf = (contentType: string | null): string => (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()

interface Named {
  compId: string
  contentType: string
}

const extension = /\.([A-Za-z0-9]{1,16})$/

/** Of the component's name, else what its content type suggests. */
export const extensionOf = ({ compId, contentType }: Named): string =>
  extension.exec(compId)?.[1] ?? mime.getExtension(mediaTypeOf(contentType)) ?? 'bin'

/** A name by which a program knows what to open it with. */
export const withExtension = (name: string, document: Named): string => (extension.test(name) ? name : `${name}.${extensionOf(document)}`)
