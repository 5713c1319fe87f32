import type { Metadata } from '../db/planned-documents.ts'
import { decodeHeader } from './bytes.ts'
import type { Incoming } from './incoming.ts'
import { Refusal } from './refusal.ts'

const valueMaxCharacters = 255

export const noMetadata: Metadata = { erpObjectType: null, erpObjectId: null, arObject: null }

/** What a source that can set headers tells of its business object along with the document. */
export const metadataOf = ({ headers }: Incoming): Metadata => {
  const valueOf = (name: string): string | null => {
    const value = headers[name]
    if (value === undefined || value === '') return null
    if (value.length > valueMaxCharacters) throw new Refusal('invalid_parameter', `${name} is too long`)
    return decodeHeader(value)
  }
  return {
    erpObjectType: valueOf('x-relay-object-type'),
    erpObjectId: valueOf('x-relay-object-id'),
    arObject: valueOf('x-relay-ar-object'),
  }
}
