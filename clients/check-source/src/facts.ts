/**
 * What the protocol says, in sentences. The table in docs/conformance.md lists them with the checks about each. Where published
 * descriptions and servers differ, the sentence says what the checks accept.
 */
export const facts = {
  // Requests
  'url-form':
    'The query begins with the command, which has no `=`. The parameters follow in any order, as far as no signature covers them.',
  'plus-sign': 'Values are percent-encoded. A `+` is a plus, never a blank.',
  'protocol-versions': '`pVersion` is `0045`, `0046` or `0047`, and the answer repeats it in `X-pVersion`.',
  'unknown-parameters': 'Source systems send parameters that the description does not have. A server may refuse them with 400.',
  'mandatory-parameters': 'A document command without `pVersion` or `docId` is refused with 400.',
  'unknown-commands': 'An unknown command, and a known one with a wrong method, are refused with 400.',
  'unknown-repository': 'An unknown `contRep` is refused with 404 (some servers: 400).',
  'error-description': 'Every error has the header `X-ErrorDescription`: printable ASCII without line breaks.',
  'doc-ids': 'A `docId` has up to 40 characters in ArchiveLink.',
  'comp-ids': 'A `compId` may be a file name: with blanks, dots, a plus, and characters outside of ASCII as UTF-8 bytes.',
  'comp-id-length': 'A `compId` has up to 255 characters, however many bytes they are in UTF-8.',
  'comp-id-charset': 'A system without Unicode sends a `compId` in the code page of its front ends, mostly Windows-1252.',
  'comp-id-once': 'Source systems percent-encode some names twice. A `compId` is decoded once, and the name that results is its key.',
  // Information about the server
  'server-info':
    '`serverInfo` answers `text/plain`: a line for the server and one per repository, of `key="value";` pairs, ended by CR LF.',
  'server-info-all': '`serverInfo` without `contRep` lists all repositories.',
  'server-info-plain': 'Administrators open `serverInfo` in a browser without `pVersion`. A server may refuse that with 400.',
  'server-info-html': '`resultAs=html` of `serverInfo` and `info` answers a page. A server may refuse it with 400.',
  'server-info-unknown': '`serverInfo` of an unknown repository does not report it as running.',
  'server-time': '`serverDate` and `serverTime` are the time in UTC, by which signed URLs expire.',
  // Create
  'create-put': '`create` by PUT stores one component. The answer is 201 without a body.',
  'create-post':
    '`create` by POST stores all components of a multipart body in their order. A part is named by `X-compId`, not by `Content-Disposition`.',
  'create-empty-document': 'A multipart body without parts creates a document without components.',
  'create-whole': 'A `create` stores the whole document or nothing.',
  'create-exists':
    '`create` of an existing document is refused with 403, and changes nothing. A new component in it is refused with 403 (some servers: added, 201).',
  'content-type-kept':
    'The `Content-Type` of a component, with `charset` and `version`, is returned as it was sent. `charset=` and `version=` may be empty.',
  'part-encodings':
    'A part in `base64` or `quoted-printable` (`Content-Transfer-Encoding`) is decoded, or refused with 400 (some servers: 415, 501). Its text is not the document.',
  'bytes-kept': 'The bytes of a component are returned as they were sent, whatever they are and however many, also if there are none.',
  'doc-prot': '`docProt` names the accesses that need a signature. A `create` may have it.',
  'm-create': '`mCreate` creates several documents: 201, or 250 if some existed, with a line per document. A server need not have it.',
  'large-components': 'A component has no maximum size in the protocol.',
  concurrency: 'Of several concurrent creates of one document, one succeeds.',
  // Read
  info: '`info` answers 200 with a part per component, without bytes: `Content-Length` 0, the size in `X-Content-Length`.',
  'line-ends': 'Each line of a multipart answer ends with CR LF, and so does the body of each part.',
  'info-comp-id': '`info` with `compId` describes that component only.',
  'document-headers':
    '`info` and `docGet` have `X-dateC`, `X-timeC`, `X-dateM`, `X-timeM`, `X-docId`, `X-docStatus`, and `X-numberComps` and `X-contentRep` (on some pages `X-numComps` and `X-contRep`).',
  'component-headers':
    'Each part has `X-compId`, `X-Content-Length`, `X-compDateC`, `X-compTimeC`, `X-compDateM`, `X-compTimeM` and `X-compStatus`.',
  dates: 'Dates are `YYYY-MM-DD` and times `HH:MM:SS` in UTC. A change moves the modification date, and not the creation date.',
  get: '`get` answers 200 with the bytes of a component, their number and its content type.',
  'get-default': '`get` without `compId` reads `data`, else `data1`.',
  'get-range':
    '`fromOffset` and `toOffset` are both inclusive; the status stays 200. An end behind the last byte is clamped. A begin behind it reads nothing (some servers: 400).',
  'get-head': '`get` may be asked with HEAD. A server may refuse it.',
  'doc-get': '`docGet` answers the parts of `info` with their bytes.',
  'not-found': 'A read or change of an unknown document or component is refused with 404.',
  'no-encoding': 'Answers are not compressed: `Content-Length` is the number of bytes of the component.',
  // Change
  'update-put': '`update` by PUT adds or replaces one component of an existing document, and keeps the others.',
  'update-post': '`update` by POST replaces the whole document: components that are not sent are removed.',
  append: '`append` adds bytes at the end of a component, and keeps its type.',
  'delete-document': '`delete` is a GET, answered with 200. The document is gone.',
  'delete-component': '`delete` with `compId` removes one component. After the last one, an empty document remains.',
  'delete-method': '`delete` may be asked with the method DELETE. A server may refuse it.',
  // Search
  search:
    '`search` answers the number of hits and their byte offsets, each followed by `;`. Letters match in either case unless `caseSensitive=y`. With `fromOffset` behind `toOffset` it runs backwards.',
  'attr-search':
    '`attrSearch` answers offset and length of the entries of a print list whose fields contain the values. A server need not have it.',
  // Certificates and signatures
  'put-cert': '`putCert` is not signed. It answers 200, and 406 for a body that is not a certificate.',
  'put-cert-forms': 'The certificate comes as DER, as PEM, or in a PKCS#7 message.',
  'put-cert-chain':
    'A certificate that an authority has issued comes in a PKCS#7 message with that of the authority. It counts, wherever it stands in the message.',
  'put-cert-inert': 'A certificate that was sent has no effect until an administrator activates it.',
  'get-cert':
    '`getCert` answers if signatures are checked (`security="1";`), then a line per active certificate. A server need not have it.',
  'signature-required': 'Where signatures are required, a request without `secKey` is refused with 401.',
  'signature-covers':
    'The signature covers the values of `contRep`, `docId`, `compId` (where a command changes a component), `docProt`, `accessMode`, `authId` and `expiration`, as they stand in the URL.',
  'signature-leaves': 'The signature of a read does not cover `compId`, and none covers the command.',
  'signature-access': '`accessMode` contains the letter of the command: `r`, `c`, `u` or `d`. A URL for `rd` reads and deletes.',
  'signature-expires': 'A URL is refused with 401 after its `expiration`, a time in UTC as `YYYYMMDDHHMMSS`.',
  'signature-signer': 'Only an active certificate of the repository and the `authId` signs.',
  'signature-readable': 'A `secKey` that is not a signature is refused with 401 (some servers: 400).',
  'signature-complete': 'A `secKey` without `accessMode`, `authId` or `expiration` is refused with 400 or 401.',
} as const

export type FactId = keyof typeof facts
