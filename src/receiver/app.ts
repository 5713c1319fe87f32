import type { Context, Middleware } from 'koa'
import type { Config } from '../config.ts'
import { createAppends, type AppendConfig } from '../db/appends.ts'
import { createArchiveDocuments } from '../db/archive-documents.ts'
import { createCertificates } from '../db/certificates.ts'
import type { Database } from '../db/database.ts'
import type { DocumentMessage } from '../db/outbox.ts'
import type { Receipts } from '../db/receipts.ts'
import type { Sources } from '../db/sources.ts'
import { createWorkspaces } from '../db/workspaces.ts'
import { workspaceSettings } from '../domain/settings.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { checkAccess, checkAddress } from './access.ts'
import { asRefusal } from './as-refusal.ts'
import { refusalAnswer, send, type Answer } from './answer.ts'
import { ClientGone, discardRest } from './body.ts'
import type { CommandDeps, Contents } from './call.ts'
import { parseQuery, readCommand, splitTarget, type Command } from './command.ts'
import { documentCommands } from './commands/index.ts'
import { serverInfo, type ServerInfo } from './commands/server-info.ts'
import { Refusal } from './refusal.ts'
import { createTurns } from './turns.ts'

export interface ReceiverDeps {
  db: Database
  sources: Sources
  receipts: Receipts
  contents: Contents
  /** Starts the workflows of documents that have been committed. Never throws, never waits. */
  launch(messages: DocumentMessage[]): void
  config: CommandDeps['limits'] & AppendConfig & Pick<Config, 'RELAY_HTTP_LINGER_TIMEOUT_MS' | 'RELAY_SIGNATURE_SKEW_MS'>
  log: Log
}

// clients append segments of their own: a file name, say
const ownPath = /^\/receiver\/([^/]+)\/([^/]+)(?:\/.*)?$/
const newestProtocol = '0047'

/** The content server that source systems see. Passes on whatever is not below /receiver/{userSlug}/{workspaceSlug}. */
export const createReceiver = ({ db, sources, receipts, contents, launch, config, log }: ReceiverDeps): Middleware => {
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

  const carryOut = async (ctx: Context, userSlug: string, workspaceSlug: string, query: string): Promise<Answer> => {
    const receivedAt = new Date()
    const command = readCommand(ctx.method, parseQuery(query))
    const { command: name } = command.rule
    if (name === 'serverInfo') return describe(ctx, userSlug, workspaceSlug, command, receivedAt)

    const source = await sources.find(userSlug, workspaceSlug, command.get('contRep'))
    if (!source) throw unknownRepository()
    await checkAccess(source, command, { sourceIp: ctx.ip, receivedAt }, { listKeys: certificates.listKeys, config })
    return documentCommands[name]({ source, command, request: ctx.req, receivedAt }, deps)
  }

  const describe = async (ctx: Context, userSlug: string, workspaceSlug: string, command: Command, now: Date): Promise<Answer> => {
    const contRep = command.find('contRep')
    const find = contRep === undefined ? findAll(userSlug, workspaceSlug) : findOne(userSlug, workspaceSlug, contRep)
    const { repositories, receiverAllowedCidrs } = await find
    checkAddress(receiverAllowedCidrs, ctx.ip)
    const pVersion = command.find('pVersion') ?? newestProtocol
    return serverInfo({ repositories, pVersion, asHtml: command.find('resultAs') === 'html', now })
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
    const repositories = (await sources.list(userSlug, workspaceSlug)) ?? []
    return { repositories, receiverAllowedCidrs: workspaceSettings(settings).receiverAllowedCidrs }
  }

  const refuse = async (ctx: Context, refusal: Refusal, requestId: string): Promise<void> => {
    const lingered = discardRest(ctx.req, config.RELAY_HTTP_LINGER_TIMEOUT_MS)
    // a connection that closes after the answer would take the answer with it, were there anything unread
    if (!ctx.res.shouldKeepAlive) await lingered
    else void lingered.then((ended) => ended || ctx.req.destroy())
    send(ctx, refusalAnswer(refusal), requestId)
  }

  return async (ctx, next) => {
    const { path, query } = splitTarget(ctx.req.url ?? '')
    const [, userSlug, workspaceSlug] = ownPath.exec(path) ?? []
    if (userSlug === undefined || workspaceSlug === undefined) return next()
    const requestId = newId()
    try {
      send(ctx, await carryOut(ctx, userSlug, workspaceSlug, query), requestId)
    } catch (thrown) {
      if (thrown instanceof ClientGone) {
        log.info({ requestId, reason: thrown.message }, 'the source system hung up, nothing is kept of its request')
        ctx.respond = false
        ctx.req.destroy()
        return undefined
      }
      const refusal = asRefusal(thrown)
      const level = refusal.code === 'internal_error' ? 'error' : refusal.code === 'unavailable' ? 'warn' : 'info'
      log[level]({ requestId, code: refusal.code, reason: refusal.message, err: refusal.cause }, 'refused a request')
      await refuse(ctx, refusal, requestId)
    }
    return undefined
  }
}

interface Described {
  repositories: ServerInfo['repositories']
  receiverAllowedCidrs: string[]
}

const unknownRepository = () => new Refusal('repository_not_found', 'there is no such repository')
