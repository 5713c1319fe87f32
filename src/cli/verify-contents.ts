import { countOf } from '../base/count-of.ts'
import type { Config } from '../config/config.ts'
import { createStores } from '../content/configured-stores.ts'
import { verifyContents, type DamagedDocument, type Verified } from '../content/verify.ts'
import { withDatabase } from '../db/with-database.ts'
import { snakeCased, type SnakeCased } from '../domain/casing.ts'

interface Result extends Verified {
  documents: SnakeCased<DamagedDocument>[]
}

/** `relay contents verify`: lists the documents whose content is not stored as the database has it. */
export const verifyAllContents = (config: Config, { isRead }: { isRead: boolean }): Promise<Result> =>
  withDatabase(config, 'verify', async (db) => {
    const documents: Result['documents'] = []
    const report = (damaged: DamagedDocument) => void documents.push(snakeCased(damaged))
    const verified = await verifyContents(db, await createStores(db, config), { isRead, report })
    return { ...verified, documents }
  })

/** Returns lines for people. */
export const describeVerified = ({ contents, bytes, damaged, documents }: Result): string[] => [
  ...documents.map(
    (each) =>
      `${each.workspace} ${each.repo_id} ${each.doc_id} ${each.comp_id} (document ${each.document_id}, content ${each.content_id} in ` +
      `${each.store}): ${each.problem}`,
  ),
  `Checked ${countOf(contents, 'content', 'contents')} with ${countOf(bytes, 'byte', 'bytes')}: ${damaged === 0 ? 'none is damaged' : `${damaged} damaged`}.`,
]
