import { openStores } from '../app/stores.ts'
import { countOf } from '../base/count-of.ts'
import { UserError } from '../base/errors.ts'
import { createLog } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { snakeCased, type SnakeCased } from '../domain/casing.ts'
import { countAtHome, createBringAllBack, type BroughtBack, type NotBroughtBack } from '../home/bring-all-back.ts'
import { createBringBack } from '../home/bring-back.ts'
import { findHomeUse } from '../home/copies.ts'
import { HomeFailure } from '../home/failure.ts'
import { openOutboundGuard } from '../security/outbound.ts'
import { findWorkspace } from '../workspace/administration.ts'
import { findDestination } from './find-destination.ts'

interface BringBackOptions {
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
  /** Name or id of the destination that has the contents. */
  destination: string
  /** Only contents of this repository. */
  repoId: string | undefined
  /** True to count them only. */
  dryRun: boolean
  signal: AbortSignal
  /** Is told how far the command is. */
  onProgress(line: string): void
}

interface Result {
  contents: number
  bytes: number
  failed: SnakeCased<NotBroughtBack>[]
}

const sizeOf = ({ contents, bytes }: Pick<Result, 'contents' | 'bytes'>): string =>
  `${countOf(contents, 'content', 'contents')} with ${countOf(bytes, 'byte', 'bytes')}`

/**
 * `relay contents bring-back`: brings back what a destination alone has, before it is given up.
 * @throws `UserError` if there is no such workspace or destination, it is still the home of a repository that is meant, or it is away
 */
export const bringContentsBack = async (db: Database, config: Config, options: BringBackOptions): Promise<Result> => {
  const { workspace: name, destination, repoId, dryRun, signal, onProgress } = options
  const found = await findDestination(db, destination, await findWorkspace(db, name))
  const given = { destinationId: found.id, repoId }
  if (dryRun) return { ...(await countAtHome(db, given)), failed: [] }
  const homeOf = (await findHomeUse(db, found.id)).repoIds.filter((each) => repoId === undefined || each === repoId)
  if (homeOf.length > 0) {
    const still = `${found.name} is still the home of ${homeOf.join(', ')}, so contents would leave for it again`
    throw new UserError(`${still}. Give the repositories another home, or none.`)
  }
  const outbound = openOutboundGuard(config)
  const onPage = (done: BroughtBack) => onProgress(`Brought back ${sizeOf(done)}.`)
  try {
    const { home, writeTo } = await openStores(db, config, { outbound, log: createLog('silent') })
    const bringAllBack = createBringAllBack({ db, bringBack: createBringBack({ db, home, writeTo }) })
    const done = await bringAllBack(given, signal, onPage)
    return { ...done, failed: done.failed.map((each) => snakeCased(each)) }
  } catch (thrown) {
    if (!(thrown instanceof HomeFailure)) throw thrown
    throw new UserError(`${thrown.message}. What was brought back so far stays. Run the command again later.`, { cause: thrown })
  } finally {
    await outbound.close()
  }
}

/** Returns lines for people. */
export const describeBroughtBack = (result: Result, { dryRun }: Pick<BringBackOptions, 'dryRun'>): string[] => [
  ...result.failed.map((each) => `${each.repo_id} ${each.doc_id} ${each.comp_id} (document ${each.document_id}): ${each.reason}`),
  dryRun
    ? `Nothing was changed. A run would bring back ${sizeOf(result)}.`
    : `Brought back ${sizeOf(result)}${result.failed.length > 0 ? `; ${result.failed.length} could not be read` : ''}.`,
]
