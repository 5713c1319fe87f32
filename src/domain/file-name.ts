import { cutText, plainValue } from '../base/text.ts'
import { extensionOfType } from './content-type.ts'

// What SAP encodes twice: everything but ASCII.
const escapedCharacters = /(?:%[89a-f][0-9a-f])+/gi
// A text that another client has encoded as a whole: it has no blank and no other character than those of URLs.
const isEncoded = /^(?:[\w!$&'()*+,.;=@~-]|%[0-9a-f]{2})*$/i
const escapes = /(?:%[0-9a-f]{2})+/gi
const notReadable = /[\p{C}\p{Z}/\\%]/u

/**
 * Returns the name of a component as people read it. Source systems percent-encode names, and parts of names, once more than the address that
 * carries them needs. What would not be text, or change the meaning of a path, stays encoded.
 */
export const readableName = (compId: string): string =>
  compId.replaceAll(isEncoded.test(compId) ? escapes : escapedCharacters, (run) => {
    try {
      const text = decodeURIComponent(run)
      return notReadable.test(text.replaceAll(' ', '')) ? run : text
    } catch {
      return run
    }
  })

interface NamedComponent {
  compId: string
  contentType: string
}

// Digits alone end a date or a version: `Angebot 01.03.2026`.
const extension = /\.(?=[0-9]*[A-Za-z])([A-Za-z0-9]{1,16})$/

/** Returns the file extension of a component's name, or else the one of its content type. */
export const extensionOf = ({ compId, contentType }: NamedComponent): string =>
  extension.exec(readableName(compId))?.[1] ?? extensionOfType(contentType) ?? 'bin'

/** Appends a file extension to a name that has none. */
const withExtension = (name: string, component: NamedComponent): string =>
  extension.test(name) ? name : `${name}.${extensionOf(component)}`

/** Returns the last part of a path of any system, undefined if it is no name. Front ends of source systems send `C:\\Temp\\Offer.pdf`. */
export const lastPart = (path: string | null | undefined): string | undefined => {
  const name = path?.split(/[/\\]/).at(-1)?.trim()
  return name === undefined || /^\.{0,2}$/.test(name) ? undefined : name
}

/** Returns the name of a file that others tell, on one line and cut to `maxCharacters`. */
export const toldFileName = (text: string, maxCharacters: number): string | undefined => {
  const name = lastPart(plainValue(text, Number.POSITIVE_INFINITY))
  return name === undefined ? undefined : cutText(name, maxCharacters).trimEnd()
}

export interface NamedDocument extends NamedComponent {
  /** The name that was brought in for the document: ArchiveLink calls each component `data`. */
  fileName: string | null
  /** Business data. The field `file_name` is a name that an enrichment has found. */
  fields: Readonly<Record<string, string>>
}

/** Returns the name under which a person opens a document: the one that was brought in, or an enrichment has found, or else `name`. */
export const fileNameOf = (document: NamedDocument, name = readableName(document.compId)): string =>
  withExtension(lastPart(document.fileName) ?? lastPart(document.fields['file_name']) ?? name, document)
