import mime from 'mime'

// Content types as source systems write them: with parameters that have no value, with quotation marks, semicolons at the end, and file names. They
// are kept and answered as they came, with one character per byte. This module takes them apart.

const unquoted = (text: string): string =>
  text
    .trim()
    .replaceAll(/^["']|["']$/g, '')
    .trim()

/** Returns a content type without its parameters, in lower case; an empty string if there is none. */
export const mediaTypeOf = (contentType: string | null): string => unquoted((contentType ?? '').split(';', 1)[0]!).toLowerCase()

// A value in quotation marks may contain a semicolon. Without a second mark, it goes on to the end.
const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^;]*))/g

/** Returns the first value of a parameter. @param name in lower case @returns undefined if it has none: `charset=` */
export const contentTypeParameter = (contentType: string | null, name: string): string | undefined => {
  for (const [, key, quoted, plain] of (contentType ?? '').matchAll(parameter)) {
    if (key!.toLowerCase() === name) return (quoted?.replaceAll(/\\(.)/g, '$1') ?? unquoted(plain!)) || undefined
  }
  return undefined
}

const quotedText = /"[^"\\]*"/g

/**
 * Returns true if every browser takes an answer of this content type for a PDF, and for nothing else. A comma outside of quotation marks would
 * begin another type.
 */
export const isPdf = (contentType: string): boolean =>
  /^application\/pdf\s*(?:;|$)/i.test(contentType) && !/[",]/.test(contentType.replaceAll(quotedText, ''))

const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/
const octetStream = 'application/octet-stream'

/** Returns a content type that every header can carry: the whole, without its parameters if they are not ASCII, or else `application/octet-stream`. */
export const sendableContentType = (contentType: string): string => {
  if (/^[\x21-\x7e][\x20-\x7e]*$/.test(contentType)) return contentType
  const type = mediaTypeOf(contentType)
  return mediaType.test(type) ? type : octetStream
}

/** What source systems send and the table of MIME types does not have, or has with an extension that people do not expect. */
const extensions: Record<string, string> = {
  // Document classes of ArchiveLink.
  'application/postscript': 'ps',
  'application/x-alf': 'alf',
  'application/x-alf-descr': 'txt',
  'application/x-alf-note': 'txt',
  'application/x-ascii': 'txt',
  'application/x-otf': 'otf',
  'application/x-raw': 'raw',
  'application/x-reo': 'reo',
  'application/x-scr': 'scr',
  'image/x-fax': 'tif',
  // Other names of the same types, which front ends take from their registry.
  'application/acad': 'dwg',
  'application/acrobat': 'pdf',
  'application/dwg': 'dwg',
  'application/dxf': 'dxf',
  'application/excel': 'xls',
  'application/mspowerpoint': 'ppt',
  'application/msexcel': 'xls',
  'application/msoutlook': 'msg',
  'application/msproject': 'mpp',
  'application/powerpoint': 'ppt',
  'application/tiff': 'tif',
  'application/vnd.ms-word': 'doc',
  'application/word': 'doc',
  'application/x-dwg': 'dwg',
  'application/x-excel': 'xls',
  'application/x-gzip': 'gz',
  'application/x-lotus123': '123',
  'application/x-msexcel': 'xls',
  'application/x-msg': 'msg',
  'application/x-mspowerpoint': 'ppt',
  'application/x-msword': 'doc',
  'application/x-pdf': 'pdf',
  'application/x-rtf': 'rtf',
  'application/x-tiff': 'tif',
  'application/x-visio': 'vsd',
  'application/x-zip': 'zip',
  'application/x123': '123',
  'audio/mp3': 'mp3',
  'audio/mpeg': 'mp3',
  'image/jpg': 'jpg',
  'image/pcx': 'pcx',
  'image/pjpeg': 'jpg',
  'image/tif': 'tif',
  'image/x-bmp': 'bmp',
  'image/x-dwg': 'dwg',
  'image/x-dxf': 'dxf',
  'image/x-png': 'png',
  'image/x-tiff': 'tif',
  'text/comma-separated-values': 'csv',
  'text/pdf': 'pdf',
  'text/vcard': 'vcf',
  'text/x-csv': 'csv',
}

/** Returns the file extension of a content type, undefined if none is known. */
export const extensionOfType = (contentType: string): string | undefined => {
  const type = mediaTypeOf(contentType)
  return extensions[type] ?? mime.getExtension(type) ?? undefined
}
