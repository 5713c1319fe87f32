import type { SetMetadataOf } from '../archive/metadata.ts'
import { plainValue } from '../base/text.ts'
import type { AuditActor } from '../db/audit.ts'
import { toldFileName } from '../domain/file-name.ts'
import { metadataMaxCharacters, type DocumentMetadata } from '../domain/template.ts'
import type { RfcCall } from './soap.ts'

/** What the source system tells about the documents with a docId. */
export interface ObjectLink {
  repoId: string
  docId: string
  metadata: { [Name in keyof DocumentMetadata]: string | undefined }
}

/**
 * Reads the document metadata from a call that links a document to a business object. The source system makes this call
 * after it has sent the document.
 * @returns `undefined` for any other call
 */
export const readLink = ({ functionName, imports }: RfcCall): ObjectLink | undefined => {
  if (functionName !== 'ARCHIV_CONNECTION_INSERT') return undefined
  const values = new Map(Object.entries(imports).map(([name, value]) => [name.toUpperCase(), value]))
  const text = (name: string) => {
    const value = values.get(name)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  // The function has the same limits or lower ones, but the system decides how it treats a longer value.
  const field = (name: string) => plainValue(text(name) ?? '', metadataMaxCharacters) || undefined
  const [repoId, docId] = [text('ARCHIV_ID'), text('ARC_DOC_ID')]
  if (repoId === undefined || docId === undefined) return undefined
  const metadata = {
    erpObjectType: field('SAP_OBJECT'),
    erpObjectId: field('OBJECT_ID'),
    arObject: field('AR_OBJECT'),
    fileName: toldFileName(text('FILENAME') ?? '', metadataMaxCharacters),
    description: field('DESCR'),
  }
  return { repoId, docId, metadata }
}

/** Sets the metadata of the documents that a successful call linked to a business object. Safe to repeat. */
export const applyObjectLink = async (
  setMetadata: SetMetadataOf,
  workspaceId: string,
  { repoId, docId, metadata }: ObjectLink,
  actor: AuditActor,
): Promise<void> => {
  if (Object.values(metadata).every((value) => value === undefined)) return
  await setMetadata(workspaceId, { repoId, docId }, metadata, actor)
}
