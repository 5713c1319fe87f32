import type { CommandHandler } from '../call.ts'
import type { CommandName } from '../parameters.ts'
import { create } from './create.ts'
import { getCert } from './get-cert.ts'
import { get } from './get.ts'
import { info } from './info.ts'
import { putCert } from './put-cert.ts'

/** What carries out the commands that name a repository. */
export const documentCommands: Record<Exclude<CommandName, 'serverInfo'>, CommandHandler> = { create, get, getCert, info, putCert }
