import { cutText } from '../base/text.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { mediaTypeOf } from './content-type.ts'
import { valueIn } from './field-template.ts'
import { fillTemplate, placeholderValues, type BusinessMetadata, type TemplateDocument } from './template.ts'

/** A link from a repository to a destination through one connection. */
export interface Route {
  connectionId: string
  isActive: boolean
  settings: ConnectionSettings
  destination: { id: string; name: string; connector: string }
}

/** Attributes of a document that filters and path templates use. */
export interface RoutedDocument extends TemplateDocument {
  sizeBytes: number
}

export interface PlannedDelivery {
  destination: Route['destination']
  connectionId: string
  status: 'pending' | 'held'
  path: string
  /** False if the filter of the connection needs a field that is not known yet. */
  isDecided: boolean
}

type FilteredDocument = Pick<RoutedDocument, 'contentType' | 'compId' | 'sizeBytes' | 'fields' | keyof BusinessMetadata>

/** The conditions of a filter, by their names in the settings of a connection. */
export const filterConditions = ['content_types', 'comp_ids', 'min_bytes', 'max_bytes', 'fields'] as const
export type FilterCondition = (typeof filterConditions)[number]

const objectFields: Record<string, keyof BusinessMetadata> = {
  erp_object_type: 'erpObjectType',
  erp_object_id: 'erpObjectId',
  ar_object: 'arObject',
}

/** Returns the value of a field of a filter, which may be the business object, or undefined if it is not known. */
const filteredValue = (name: string, document: FilteredDocument): string | undefined => {
  const attribute = valueIn(objectFields, name)
  return attribute === undefined ? valueIn(document.fields, name) : (document[attribute] ?? undefined)
}

/** Returns true if a filter needs a field that is not known yet. */
const isUndecided = ({ filter }: ConnectionSettings, document: FilteredDocument): boolean =>
  Object.keys(filter.fields ?? {}).some((name) => filteredValue(name, document) === undefined)

/**
 * Returns the first condition of the filter of a connection that a document does not meet, or undefined if it meets all.
 * @param isFinal false if fields that are not known may still be found: they count as met
 */
export const unmetCondition = ({ filter }: ConnectionSettings, document: FilteredDocument, isFinal = true): FilterCondition | undefined => {
  if (filter.contentTypes && !filter.contentTypes.some((type) => type.toLowerCase() === mediaTypeOf(document.contentType))) {
    return 'content_types'
  }
  if (filter.compIds && !filter.compIds.includes(document.compId)) return 'comp_ids'
  if (filter.minBytes !== undefined && document.sizeBytes < filter.minBytes) return 'min_bytes'
  if (filter.maxBytes !== undefined && document.sizeBytes > filter.maxBytes) return 'max_bytes'
  const isMet = ([name, wanted]: [string, string | string[]]) => {
    const value = filteredValue(name, document)
    return value === undefined ? !isFinal : [wanted].flat().includes(value)
  }
  return Object.entries(filter.fields ?? {}).every(isMet) ? undefined : 'fields'
}

/** Returns true if the filter of a connection selects a document. */
export const passesFilter = (settings: ConnectionSettings, document: FilteredDocument): boolean =>
  unmetCondition(settings, document) === undefined

const unsafeInPath = /[\p{Cc}/\\\u202a-\u202e\u2066-\u2069]|%(?=[0-9a-f]{2})/giu

const percentEncoded = (text: string) =>
  [...new TextEncoder().encode(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

/**
 * Encodes a value as one path segment. Separators, control characters and direction marks are percent-encoded, so the value
 * cannot leave its folder and different values stay different.
 */
export const pathSegment = (text: string): string => {
  const safe = text.replaceAll(unsafeInPath, percentEncoded)
  return safe === '.' || safe === '..' ? percentEncoded(safe) : safe
}

/** Returns the path of a part of a manifest at a destination that gets a copy. No document has it. */
export const pathOfManifest = (fileName: string): string => `manifests/${fileName}`

// The dot in the name of such a part: in its folder below any other one, and where this folder may be that of the destination.
const dotOfManifest = /(?<=^(?:(?:.*\/)?manifests\/)?\d{4}-\d{2}-\d{2})\.(?=(?:jsonl|p7s|pem|tsr)$)/iu

/**
 * Returns the path of a document at the destinations of a connection, below their folder or prefix. It is not that of the copy of a manifest: the dot
 * of such a name is encoded.
 */
export const pathOf = ({ pathTemplate }: ConnectionSettings, document: RoutedDocument): string =>
  fillTemplate(pathTemplate, { ...placeholderValues(document), ...cutFields(document.fields) }, pathSegment).replace(dotOfManifest, '%2E')

// Several fields have to fit into a path, which has 1,024 bytes in S3 and 400 characters in SharePoint. The placeholders of the document
// itself tell documents apart.
const fieldMaxCharacters = 64

const cutFields = (fields: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [`meta.${name}`, cutText(value, fieldMaxCharacters).trim()]))

/**
 * Plans one delivery per destination. If several connections lead to one destination, an active connection wins, and of these one whose filter
 * is decided; the delivery is held only if all of them are inactive.
 * @param isFinal false if fields that are not known may still be found
 */
export const planDeliveries = (routes: Route[], document: RoutedDocument, isFinal = true): PlannedDelivery[] => {
  const planned = new Map<string, PlannedDelivery>()
  const rankOf = ({ status, isDecided }: Pick<PlannedDelivery, 'status' | 'isDecided'>) =>
    (status === 'pending' ? 2 : 0) + (isDecided ? 1 : 0)
  for (const route of routes) {
    if (unmetCondition(route.settings, document, isFinal) !== undefined) continue
    const isDecided = isFinal || !isUndecided(route.settings, document)
    const earlier = planned.get(route.destination.id)
    if (earlier && rankOf(earlier) >= rankOf({ status: route.isActive ? 'pending' : 'held', isDecided })) continue
    planned.set(route.destination.id, {
      isDecided,
      destination: route.destination,
      connectionId: route.connectionId,
      status: route.isActive ? 'pending' : 'held',
      path: pathOf(route.settings, document),
    })
  }
  return [...planned.values()]
}
