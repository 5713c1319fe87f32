/** Business object of the source system that a document belongs to. Fields are null until they are known. */
export interface BusinessMetadata {
  erpObjectType: string | null
  erpObjectId: string | null
  arObject: string | null
}

/** Maximum length of a field. */
export const metadataMaxCharacters = 255

/** Returns `{ businessObject: '{type}/{id}' }` as operators search for it, or nothing if the object is not known. */
export const businessObjectOf = ({
  erpObjectType,
  erpObjectId,
}: Pick<BusinessMetadata, 'erpObjectType' | 'erpObjectId'>): { businessObject?: string } =>
  erpObjectId === null ? {} : { businessObject: erpObjectType === null ? erpObjectId : `${erpObjectType}/${erpObjectId}` }
