import type { Payload } from '../connector.ts'
import { percentEncoded } from './http.ts'

// A line of a mail has at most 998 characters with its name, and such a value cannot be folded (RFC 5322, 2.1.1).
const valueMaxCharacters = 900
// Tomcat accepts 8 KiB for all headers of a request. This leaves half of it to credentials, signatures and gateways.
const totalMaxCharacters = 4_096

/**
 * Returns what is known of a document as headers, by which a receiver can route without reading the body. Percent-encoded. A value that is
 * too long is left out, because a part of it would be another value; so is one for which all of them leave no room.
 */
export const documentHeaders = (payload: Payload, fileName: string): Record<string, string> => {
  const values: [name: string, value: string | number | null][] = [
    ['x-relay-event-type', 'document'],
    ['x-relay-workspace', payload.workspace],
    ['x-relay-connection-id', payload.connectionId],
    ['x-relay-delivery-id', payload.deliveryId],
    ['x-relay-attempt', payload.attempt],
    ['x-relay-document-id', payload.documentId],
    ['x-relay-sha256', payload.sha256],
    ['x-relay-repo-id', payload.repoId],
    ['x-relay-doc-id', payload.docId],
    ['x-relay-comp-id', payload.compId],
    ['x-relay-path', payload.path],
    ['x-relay-object-type', payload.erpObjectType],
    ['x-relay-object-id', payload.erpObjectId],
    ['x-relay-ar-object', payload.arObject],
    ['x-relay-file-name', fileName],
    ['x-relay-content-type', payload.contentType],
    ...Object.entries(payload.fields).map(([name, value]): [string, string] => [`x-relay-field-${name.replaceAll('_', '-')}`, value]),
  ]
  const headers: Record<string, string> = {}
  let characters = 0
  for (const [name, value] of values) {
    const encoded = percentEncoded(String(value ?? ''))
    const added = `${name}: ${encoded}\r\n`.length
    if (encoded === '' || encoded.length > valueMaxCharacters || characters + added > totalMaxCharacters) continue
    characters += added
    headers[name] = encoded
  }
  return headers
}
