import { messageOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Database } from '../db/database.ts'
import { findRepositoryWarnings } from '../workspace/repository-warnings.ts'

const namesMax = 20

/** Logs one line that names the repositories to which everybody may send documents, if there are any. Never fails. */
export const warnAboutOpenReceivers = async (db: Database, log: Log): Promise<void> => {
  try {
    const { open_to_all: open } = await findRepositoryWarnings(db)
    if (open.length === 0) return
    const text = 'repositories accept unsigned requests from every address; set receiver_allowed_cidrs or signature_verification'
    log.warn({ count: open.length, repositories: open.slice(0, namesMax) }, text)
  } catch (thrown) {
    log.info({ reason: messageOf(thrown) }, 'the repositories could not be checked for open receivers')
  }
}
