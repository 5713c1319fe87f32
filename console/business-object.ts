import type { Schemas } from './api.ts'

/** Returns what people call a document by: the type and key of its business object, or undefined while it has none. */
export const businessObjectOf = ({ erp_object_type: type, erp_object_id: id }: Schemas['DocumentMetadata']): string | undefined =>
  type === null && id === null ? undefined : [type, id].filter((part) => part !== null).join(' ')
