import type { CommandHandler } from '../call.ts'
import type { CommandName } from '../parameters.ts'
import { append } from './append.ts'
import { attrSearch } from './attr-search.ts'
import { create } from './create.ts'
import { deleteCommand } from './delete.ts'
import { docGet } from './doc-get.ts'
import { getCert } from './get-cert.ts'
import { get } from './get.ts'
import { info } from './info.ts'
import { mCreate } from './m-create.ts'
import { putCert } from './put-cert.ts'
import { search } from './search.ts'
import { update } from './update.ts'

/** What carries out the commands that name a repository. */
export const documentCommands: Record<Exclude<CommandName, 'serverInfo'>, CommandHandler> = {
  append,
  attrSearch,
  create,
  delete: deleteCommand,
  docGet,
  get,
  getCert,
  info,
  mCreate,
  putCert,
  search,
  update,
}
