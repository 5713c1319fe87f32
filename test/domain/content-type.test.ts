import { isOpaque } from '../../src/capture/redact-body.ts'
import { contentTypeParameter, extensionOfType, isPdf, mediaTypeOf, sendableContentType } from '../../src/domain/content-type.ts'
import { decodeText } from '../../src/domain/decoded-text.ts'
import { extensionOf, fileNameOf } from '../../src/domain/file-name.ts'

const bytesOf = (text: string) => Buffer.from(text).toString('latin1')

// What the archive keeps, what each reader makes of it: media type, charset, whether a browser may show it as a PDF, and what a header of a target carries.
test.each([
  ['application/pdf', 'application/pdf', undefined, true, 'application/pdf'],
  ['application/pdf; charset=; version=1.7', 'application/pdf', undefined, true, 'application/pdf; charset=; version=1.7'],
  ['application/pdf;charset=;version=', 'application/pdf', undefined, true, 'application/pdf;charset=;version='],
  ['application/pdf; charset="utf-8"', 'application/pdf', 'utf-8', true, 'application/pdf; charset="utf-8"'],
  ["application/pdf; version='1.4' ;", 'application/pdf', undefined, true, "application/pdf; version='1.4' ;"],
  ['Application/PDF;', 'application/pdf', undefined, true, 'Application/PDF;'],
  ['"application/pdf"', 'application/pdf', undefined, false, '"application/pdf"'],
  [
    'application/pdf; name="A; charset=x, B.pdf"; charset=utf-8',
    'application/pdf',
    'utf-8',
    true,
    'application/pdf; name="A; charset=x, B.pdf"; charset=utf-8',
  ],
  [bytesOf('application/pdf; name="Rechnung ß.pdf"'), 'application/pdf', undefined, true, 'application/pdf'],
  ['application/pdf; name="\xdcbersicht.pdf"', 'application/pdf', undefined, true, 'application/pdf'],
  ['application/pdf, text/html', 'application/pdf, text/html', undefined, false, 'application/pdf, text/html'],
  ['application/pdf; a="\\", text/html; b="', 'application/pdf', undefined, false, 'application/pdf; a="\\", text/html; b="'],
  ['text/plain; charset = ISO-8859-1 ; version=', 'text/plain', 'ISO-8859-1', false, 'text/plain; charset = ISO-8859-1 ; version='],
  ['text/xml;CHARSET=utf-16', 'text/xml', 'utf-16', false, 'text/xml;CHARSET=utf-16'],
  ['; charset=', '', undefined, false, '; charset='],
  ['\xe4', '\xe4', undefined, false, 'application/octet-stream'],
  ['', '', undefined, false, 'application/octet-stream'],
])('%j', (contentType, mediaType, charset, pdf, sent) => {
  expect(mediaTypeOf(contentType)).toBe(mediaType)
  expect(contentTypeParameter(contentType, 'charset')).toBe(charset)
  expect(isPdf(contentType)).toBe(pdf)
  expect(sendableContentType(contentType)).toBe(sent)
})

test('the capture reads the charset between empty parameters, and knows JSON in quotation marks', () => {
  expect(decodeText(Buffer.from('M\xfcller', 'latin1'), 'text/plain; version=; charset="ISO-8859-1";').text).toBe('Müller')
  expect(isOpaque(Buffer.from('a=b&c'), '"application/json";')).toBe(false)
})

// The document classes of ArchiveLink, and what Office and front ends call their files.
test.each([
  ['image/tiff', 'tif'],
  ['application/octet-stream', 'bin'],
  ['application/msword', 'doc'],
  ['application/pdf; charset=; version=1.7', 'pdf'],
  ['application/x-pdf', 'pdf'],
  ['application/postscript', 'ps'],
  ['application/rtf', 'rtf'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.ms-project', 'mpp'],
  ['application/vnd.ms-powerpoint', 'ppt'],
  ['application/vnd.ms-outlook', 'msg'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['application/vnd.openxmlformats-officedocument.presentationml.presentation', 'pptx'],
  ['application/x-alf', 'alf'],
  ['application/x-alf-descr; charset=', 'txt'],
  ['application/x-otf', 'otf'],
  ['application/x-raw', 'raw'],
  ['application/x-scr', 'scr'],
  ['application/x-zip-compressed', 'zip'],
  ['image/bmp', 'bmp'],
  ['image/jpeg', 'jpg'],
  ['image/jpg', 'jpg'],
  ['image/pjpeg', 'jpg'],
  ['image/x-pcx', 'pcx'],
  ['image/vnd.dwg', 'dwg'],
  ['audio/mpeg', 'mp3'],
  ['text/plain; charset=utf-8', 'txt'],
  ['text/xml', 'xml'],
  ['application/x-unheard-of', undefined],
])('a file of the type %s has the extension %s', (contentType, extension) => {
  expect(extensionOfType(contentType)).toBe(extension)
})

test.each([
  ['data', 'application/x-otf', 'otf', 'data.otf'],
  ['data', 'application/x-unheard-of', 'bin', 'data.bin'],
  ['Angebot.DOCX', 'application/octet-stream', 'DOCX', 'Angebot.DOCX'],
  ['Angebot v1.2', 'application/pdf', 'pdf', 'Angebot v1.2.pdf'],
  ['Vertrag 01.03.2026', 'application/msword', 'doc', 'Vertrag 01.03.2026.doc'],
  ['backup.7z', 'application/octet-stream', '7z', 'backup.7z'],
])('the component %j of the type %s has the extension %s, and is attached as %j', (compId, contentType, extension, name) => {
  expect(extensionOf({ compId, contentType })).toBe(extension)
  expect(fileNameOf({ compId, contentType, fileName: null, fields: {} })).toBe(name)
})
