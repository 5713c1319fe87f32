import { openStores } from '../app/stores.ts'
import { countOf } from '../base/count-of.ts'
import { createLog } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { verifyContents, type DamagedDocument, type Verified } from '../content/verify.ts'
import { withDatabase } from '../db/with-database.ts'
import { snakeCased, type SnakeCased } from '../domain/casing.ts'
import { openOutboundGuard } from '../security/outbound.ts'

interface Result extends Verified {
  documents: SnakeCased<DamagedDocument>[]
}

/** `relay contents verify`: lists the documents whose content is not stored as the database has it. */
export const verifyAllContents = (config: Config, { isRead }: { isRead: boolean }): Promise<Result> =>
  withDatabase(config, 'verify', async (db) => {
    const documents: Result['documents'] = []
    const report = (damaged: DamagedDocument) => void documents.push(snakeCased(damaged))
    const outbound = openOutboundGuard(config)
    try {
      const { stores } = await openStores(db, config, { outbound, log: createLog('silent') })
      return { ...(await verifyContents(db, stores, { isRead, report })), documents }
    } finally {
      await outbound.close()
    }
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
