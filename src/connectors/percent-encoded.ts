// blanks at either end would be lost on the way, and a bare percent sign would be decoded
const unsafe = /[^\x20-\x7e]+|%|^ +| +$/g

/** Any text as a header value: what is not printable ASCII percent-encoded, for the receiver to decode with decodeURIComponent. */
export const percentEncoded = (text: string) => text.toWellFormed().replace(unsafe, encodeURIComponent)

/** A source system's content type is any text; what HTTP cannot carry is sent as bytes of no known type. */
export const contentTypeHeader = (text: string) => (/^[\x21-\x7e][\x20-\x7e]*$/.test(text) ? text : 'application/octet-stream')
