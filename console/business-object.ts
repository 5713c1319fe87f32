import { businessObjectText, readBusinessObject, type Piece } from '../src/domain/business-object.ts'
import type { Schemas } from './api.ts'
import { language } from './preferences.ts'

type Metadata = Schemas['DocumentMetadata']

const keyOf = ({ erp_object_type: type, erp_object_id: key }: Metadata) => ({ type, key })

/** Returns what people call a document by, in the language of the console, or undefined while its business object is not known. */
export const businessObjectOf = (metadata: Metadata): string | undefined => businessObjectText(keyOf(metadata), language.value)

/** Returns the same in pieces. */
export const businessPiecesOf = (metadata: Metadata): Piece[] | undefined => readBusinessObject(keyOf(metadata), language.value)

/** Returns the type and the key as the source system writes them, or undefined while they are not known. */
export const businessKeyOf = ({ erp_object_type: type, erp_object_id: key }: Metadata): string | undefined =>
  type === null && key === null ? undefined : [type, key].filter((part) => part !== null).join(' ')
