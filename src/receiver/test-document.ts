import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { refusals } from '../domain/refusal-codes.ts'
import type { Repository } from '../routing/repositories.ts'
import type { Workspace } from '../workspace/workspaces.ts'
import type { Answer } from './answer.ts'
import type { Refusal } from './refusal.ts'

/** A create that the relay makes itself, in place of the source system. */
export interface TestCreate {
  requestId: string
  target: string
  contentType: string
  body: Buffer
}

interface TestRepository {
  id: string
  repoId: string
  status: Repository['status']
  warnings: readonly { code: string }[]
}

interface TestDocumentDeps {
  db: Database
  /** Executes the create and waits until it has been answered and captured. */
  execute(create: TestCreate): Promise<Answer | undefined>
}

/** Returns a PDF of one page. @param lines ASCII text */
const testPdf = (lines: readonly string[]): Buffer => {
  const shown = lines.map((line) => `(${line.replaceAll(/[\\()]/g, String.raw`\$&`)}) Tj T*`).join('\n')
  const content = `BT\n/F1 14 Tf\n20 TL\n72 760 Td\n${shown}\nET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
  ]
  let text = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const table = ['0000000000 65535 f ', ...offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n `)]
  const trailer = `trailer\n<< /Size ${table.length} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`
  return Buffer.from(`${text}xref\n0 ${table.length}\n${table.join('\n')}\n${trailer}`, 'latin1')
}

const errorOf = ({ code, message, retryAfterSeconds }: Refusal): AppError => {
  const text = `The receiver has refused the test document: ${code}: ${message}.`
  if (refusals[code].status < 500 || code === 'quota_exceeded') return new AppError('conflict', text)
  const options = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  return new AppError(code === 'rate_limited' ? 'rate_limited' : 'unavailable', text, options)
}

/**
 * Has the receiver store a small PDF, as if the source system had sent it: everything from the command on is that of any create. The
 * signature and the address of the source system are not checked, because the caller has an API key of the workspace.
 * @returns the new document, and the captured request that contains it
 * @throws `AppError` 409 if the repository cannot deliver it, or 429 or 503 if the receiver refuses it for now
 */
export const createSendTestDocument =
  ({ db, execute }: TestDocumentDeps) =>
  async (
    { id: workspaceId, userSlug, workspaceSlug }: Workspace,
    { id: subjectId, repoId, status, warnings }: TestRepository,
    actor: AuditActor,
  ): Promise<{ documentId: string; requestId: string }> => {
    if (status !== 'active') throw new AppError('conflict', 'The repository is inactive: it refuses documents.')
    if (warnings.some(({ code }) => code === 'not_connected')) {
      throw new AppError('conflict', 'No connection leads from the repository to a destination: the document would be discarded.')
    }
    const requestId = newId()
    const docId = `TEST-${newId()}`
    // Record it before it is executed: a create that is broken off may still have had an effect.
    await db.transaction((trx) =>
      record(trx, {
        workspaceId,
        event: 'repository.test_document_sent',
        subjectId,
        description: `A test document was sent to repository ${repoId}.`,
        metadata: { repo_id: repoId, doc_id: docId, request_id: requestId },
        actor,
      }),
    )
    const query = `create&pVersion=0047&contRep=${encodeURIComponent(repoId)}&docId=${docId}&compId=data`
    const answer = await execute({
      requestId,
      target: `/receiver/${userSlug}/${workspaceSlug}?${query}`,
      contentType: 'application/pdf',
      body: testPdf(['Test document of Document Relay', `Repository ${repoId}`, `Document ${docId}`]),
    })
    if (answer?.refusal) throw errorOf(answer.refusal)
    const document = await db('documents').where({ workspace_id: workspaceId, request_id: requestId }).first<{ id: string }>('id')
    return { documentId: document.id, requestId }
  }

export type SendTestDocument = ReturnType<typeof createSendTestDocument>
