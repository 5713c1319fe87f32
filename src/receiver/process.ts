import { createAppends, type AppendConfig } from '../db/appends.ts'
import { createArchiveDocuments } from '../db/archive-documents.ts'
import { createCertificates } from '../db/certificates.ts'
import type { Database } from '../db/database.ts'
import type { Receipts } from '../db/receipts.ts'
import type { Sources } from '../db/sources.ts'
import { createWorkspaces } from '../db/workspaces.ts'
import { workspaceSettings } from '../domain/settings.ts'
import type { Log } from '../log.ts'
import type { Launcher } from '../temporal/launcher.ts'
import { checkAccess, checkAddress, type AccessDeps } from './access.ts'
import { refusalAnswer, type Answer } from './answer.ts'
import { asRefusal } from './as-refusal.ts'
import { ClientGone } from './body.ts'
import type { CommandDeps, Contents } from './call.ts'
import { readCommand, type Command } from './command.ts'
import { documentCommands } from './commands/index.ts'
import { serverInfo, type ServerInfo } from './commands/server-info.ts'
import type { Exchange } from './exchange.ts'
import { Refusal } from './refusal.ts'
import { createTurns } from './turns.ts'

export interface ProcessDeps {
  db: Database
  sources: Sources
  receipts: Receipts
  contents: Contents
  /** Starts the workflows of documents that have been committed. Never throws, never waits. */
  launch: Launcher['launch']
  config: CommandDeps['limits'] & AppendConfig & AccessDeps['config']
  log: Log
}

const newestProtocol = '0047'

/** What becomes of a request, whether it comes in by HTTP or is replayed: it ends in an answer that has been given. */
export type Process = (exchange: Exchange, give: (answer: Answer) => Promise<void>) => Promise<'answered' | 'client gone'>

export const createProcess = ({ db, sources, receipts, contents, launch, config, log }: ProcessDeps): Process => {
  const workspaces = createWorkspaces(db)
  const certificates = createCertificates(db)
  const deps: CommandDeps = {
    appends: createAppends(db, config),
    turns: createTurns(config.RELAY_DOCUMENT_LOCK_TIMEOUT_MS),
    archiveDocuments: createArchiveDocuments(db, config),
    certificates,
    receipts,
    contents,
    launch,
    log,
    limits: config,
  }

  const access: AccessDeps = { listKeys: certificates.listKeys, findDocProt: deps.archiveDocuments.findDocProt, config }

  const carryOut = async (exchange: Exchange): Promise<Answer> => {
    const { incoming: request, userSlug, workspaceSlug, query, captured } = exchange
    const command = readCommand(request.method, query)
    const { command: name } = command.rule
    if (name === 'serverInfo') return describe(exchange, command)

    const source = await sources.find(userSlug, workspaceSlug, command.get('contRep'))
    if (!source) throw unknownRepository()
    await checkAccess(source, command, request, access)
    return documentCommands[name]({ source, command, request, captured }, deps)
  }

  const describe = async ({ incoming, userSlug, workspaceSlug }: Exchange, command: Command): Promise<Answer> => {
    const contRep = command.find('contRep')
    const find = contRep === undefined ? findAll(userSlug, workspaceSlug) : findOne(userSlug, workspaceSlug, contRep)
    const { repositories, receiverAllowedCidrs } = await find
    checkAddress(receiverAllowedCidrs, incoming.sourceIp)
    const pVersion = command.find('pVersion') ?? newestProtocol
    return serverInfo({ repositories, pVersion, asHtml: command.find('resultAs') === 'html', now: incoming.receivedAt })
  }

  const findOne = async (userSlug: string, workspaceSlug: string, contRep: string): Promise<Described> => {
    const source = await sources.find(userSlug, workspaceSlug, contRep)
    if (!source) throw unknownRepository()
    return { repositories: [source.repository], receiverAllowedCidrs: source.workspace.settings.receiverAllowedCidrs }
  }

  const findAll = async (userSlug: string, workspaceSlug: string): Promise<Described> => {
    const workspace = await workspaces.find(userSlug, workspaceSlug)
    if (!workspace) throw unknownRepository()
    const { settings } = await workspaces.findSettings(workspace.id)
    const repositories = await sources.list(userSlug, workspaceSlug)
    return { repositories, receiverAllowedCidrs: workspaceSettings(settings).receiverAllowedCidrs }
  }

  return async (exchange, give) => {
    const requestId = exchange.incoming.id
    try {
      await give(await carryOut(exchange))
    } catch (thrown) {
      if (thrown instanceof ClientGone) {
        log.info({ requestId, reason: thrown.message }, 'the source system hung up, nothing is kept of its document')
        return 'client gone'
      }
      const refusal = asRefusal(thrown)
      const level = refusal.code === 'internal_error' ? 'error' : refusal.code === 'unavailable' ? 'warn' : 'info'
      log[level]({ requestId, code: refusal.code, reason: refusal.message, err: refusal.cause }, 'refused a request')
      await give(refusalAnswer(refusal))
    }
    return 'answered'
  }
}

interface Described {
  repositories: ServerInfo['repositories']
  receiverAllowedCidrs: string[]
}

const unknownRepository = () => new Refusal('repository_not_found', 'there is no such repository')
