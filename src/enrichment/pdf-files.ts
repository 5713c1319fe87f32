import { PDF, PdfArray, PdfDict, PdfName, PdfRef, PdfStream, PdfString, type PdfObject } from '@libpdf/core'

export interface PdfFile {
  /** The name in the PDF. It may contain a path. */
  name: string
  /** Whether the PDF declares that it is XML. */
  isXml: boolean
  /** Returns the bytes of the file. @throws if they are missing, or cannot be decoded */
  read: () => Uint8Array
}

/** The files in a PDF. `isRepaired`: its objects were looked for in all its bytes, because its own list of them is damaged. */
export interface PdfFiles {
  files: PdfFile[]
  isRepaired: boolean
}

/** A PDF that only opens with a password. */
export class EncryptedPdfError extends Error {}

// Objects that are looked at, the nearest to the catalog first. A scan of thousands of pages would take too long.
const objectsMax = 20_000
const filesMax = 200
const xmlTypes = new Set(['text/xml', 'application/xml'])
// The names of a file and of its bytes, the present ones first. The last three are those of PDF 1.2.
const fileKeys = ['UF', 'F', 'Unix', 'Mac', 'DOS']

/** @throws if there is nothing to decode, or if nothing can be decoded: the library returns what it can */
const readStream = (stream: PdfStream | undefined): Uint8Array => {
  if (!stream) throw new Error('its bytes are not in the PDF')
  const bytes = stream.getDecodedData()
  if (bytes.length === 0 && stream.data.length > 0) throw new Error('its bytes have another form than they declare')
  return bytes
}

const isHolder = (value: PdfObject | null | undefined) => value instanceof PdfDict || value instanceof PdfArray

/**
 * Lists the files in a PDF, wherever a specification of a file may stand: in the list of embedded files, in a list of associated files (`AF`) of
 * the document, a page, an annotation or any other object, and in an annotation that pins a file to a page.
 * @throws EncryptedPdfError, and errors of the library if the PDF is damaged
 */
export const listPdfFiles = async (data: Uint8Array): Promise<PdfFiles> => {
  const { context, isEncrypted, isAuthenticated, recoveredViaBruteForce: isRepaired } = await PDF.load(data)
  if (isEncrypted && !isAuthenticated) throw new EncryptedPdfError('the PDF is encrypted')
  const resolved = (value: PdfObject | null | undefined) => (value instanceof PdfRef ? context.resolve(value) : value)
  const seen = new Set<string>()
  const queue: PdfObject[] = [context.catalog.getDict()]
  const push = (value: PdfObject | null | undefined) => {
    if (queue.length >= objectsMax || !value) return
    if (value instanceof PdfRef) {
      const key = `${value.objectNumber} ${value.generation}`
      if (seen.has(key)) return
      seen.add(key)
      queue.push(value)
    } else if (isHolder(value)) queue.push(value)
  }
  const fileOf = (specification: PdfDict): (PdfFile & { stream: PdfStream | undefined }) | undefined => {
    const embedded = resolved(specification.get('EF'))
    if (!(embedded instanceof PdfDict)) return undefined
    const of = (holder: PdfDict) => fileKeys.map((key) => resolved(holder.get(key)))
    const name = of(specification).find((each) => each instanceof PdfString)
    const stream = of(embedded).find((each) => each instanceof PdfStream)
    const type = resolved(stream?.get('Subtype'))
    const isXml = type instanceof PdfName && xmlTypes.has(type.value.toLowerCase())
    return { stream, name: name?.asString() ?? '', isXml, read: () => readStream(stream) }
  }

  const files = new Map<unknown, PdfFile>()
  for (let at = 0; at < queue.length && files.size < filesMax; at += 1) {
    const value = resolved(queue[at])
    if (value instanceof PdfArray) for (const each of value) push(each)
    if (!(value instanceof PdfDict)) continue
    const file = fileOf(value)
    // One file may be listed, associated and pinned.
    if (file && !files.has(file.stream)) files.set(file.stream ?? file, file)
    if (!file) for (const [, each] of value) push(each)
  }
  return { files: [...files.values()], isRepaired }
}
