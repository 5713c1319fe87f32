import type { Database } from '../db/database.ts'
import { createDocuments } from '../db/documents.ts'
import type { RfcCall } from './soap.ts'

/**
 * What a call that links a document to a business object tells about the document: such a link is made after the bytes have come, and
 * may pass here. Undefined for every other call.
 */
const linkOf = ({ functionName, imports }: RfcCall) => {
  if (functionName !== 'ARCHIV_CONNECTION_INSERT') return undefined
  const values = new Map(Object.entries(imports).map(([name, value]) => [name.toUpperCase(), value]))
  const text = (name: string) => {
    const value = values.get(name)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const [repoId, docId] = [text('ARCHIV_ID'), text('ARC_DOC_ID')]
  if (repoId === undefined || docId === undefined) return undefined
  return { repoId, docId, metadata: { erpObjectType: text('SAP_OBJECT'), erpObjectId: text('OBJECT_ID'), arObject: text('AR_OBJECT') } }
}

/** Sets the metadata of the documents that a call, which has succeeded, was about. Doing it twice changes nothing. */
export const followLink = async (db: Database, workspaceId: string, call: RfcCall): Promise<void> => {
  const link = linkOf(call)
  if (link && Object.values(link.metadata).some((value) => value !== undefined)) {
    await createDocuments(db).setMetadata(workspaceId, link, link.metadata)
  }
}
