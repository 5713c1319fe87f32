import type { Certificates } from '../access/certificates.ts'
import type { ReceivingRepositories, RepositorySummary, ReceivingRepository } from '../archive/receiving-repository.ts'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import type { Config } from '../config/config.ts'
import type { CommandName } from '../content-server/parameters.ts'
import type { Installation } from '../db/installation.ts'
import { hasPassed, hopsHeader } from '../domain/headers.ts'
import { workspaceSettings, type WorkspaceSettings } from '../domain/settings.ts'
import { isInAnyRange } from '../security/address-filter.ts'
import { createAttemptLimit } from '../security/attempt-limit.ts'
import type { Workspaces } from '../workspace/workspaces.ts'
import { refusalAnswer, type Answer } from './answer.ts'
import { ClientGone } from './body.ts'
import type { CommandConfig, CommandDeps, CommandHandler } from './command-context.ts'
import { inCodePage, readCommand, type Command } from './command.ts'
import { append } from './commands/append.ts'
import { attrSearch } from './commands/attr-search.ts'
import { create } from './commands/create.ts'
import { deleteCommand } from './commands/delete.ts'
import { docGet } from './commands/doc-get.ts'
import { getCert } from './commands/get-cert.ts'
import { get } from './commands/get.ts'
import { info } from './commands/info.ts'
import { mCreate } from './commands/m-create.ts'
import { putCert } from './commands/put-cert.ts'
import { search } from './commands/search.ts'
import { serverInfo } from './commands/server-info.ts'
import { update } from './commands/update.ts'
import type { Exchange, ReceiverRequest } from './exchange.ts'
import { createKeyedMutex } from './keyed-mutex.ts'
import { receiverLimits, type ReceiverLimits } from './limits.ts'
import { checkRate, createRateLimit } from './quota.ts'
import type { ReceiverLog } from './receiver-log.ts'
import { Refusal, toRefusal } from './refusal.ts'
import { concurrentSearches } from './search/limits.ts'
import { checkSignature, type SignatureDeps } from './signature.ts'

/** The commands that name a repository. */
const handlers: Record<Exclude<CommandName, 'serverInfo'>, CommandHandler> = {
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

export interface ExecuteDeps extends Omit<
  CommandDeps,
  'limits' | 'appendMutex' | 'putCertLimit' | 'searches' | 'certificates' | 'receiverLog'
> {
  receivingRepositories: ReceivingRepositories
  workspaces: Pick<Workspaces, 'find' | 'findSettings'>
  installation: Installation
  certificates: CommandDeps['certificates'] & Pick<Certificates, 'listKeys' | 'listAuthIds'>
  receiverLog: CommandDeps['receiverLog'] & Pick<ReceiverLog, 'refused'>
  limits?: Partial<ReceiverLimits>
  config: CommandConfig & AccessDeps['config']
}

/** Executes a request, whether it arrives over HTTP or is replayed, and passes its answer to `send`. */
type Execute = (exchange: Exchange, send: (answer: Answer) => Promise<void>) => Promise<'answered' | 'client gone'>

const newestProtocolVersion = '0047'

export const createExecute = (deps: ExecuteDeps): Execute => {
  const { receivingRepositories, workspaces, installation, certificates, archiveDocuments, config, log, receiverLog } = deps
  const limits = { ...receiverLimits, ...deps.limits }
  const rateLimit = createRateLimit()
  const access: AccessDeps = {
    listKeys: certificates.listKeys,
    listAuthIds: certificates.listAuthIds,
    findDocProts: archiveDocuments.findDocProts,
    config,
  }
  const commandDeps: CommandDeps = {
    ...deps,
    appendMutex: createKeyedMutex(limits.lockTimeoutMs),
    putCertLimit: createAttemptLimit(limits.certificatesPerMinute),
    searches: createConcurrencyLimit(() => concurrentSearches),
    limits: { ...config, ...limits },
  }

  const run = async (exchange: Exchange): Promise<Answer> => {
    const { request, userSlug, workspaceSlug, query } = exchange
    const hops = request.headers[hopsHeader]
    if (hops !== undefined && hasPassed(hops, await installation.id())) throw loopDetected()
    const command = readCommand(request.method, query)
    const name = command.rule.command
    if (name === 'serverInfo') return describeServer(exchange, command)

    const forStoring = command.rule.access !== 'r' && command.rule.access !== 'd'
    const repository = await receivingRepositories.find(userSlug, workspaceSlug, command.get('contRep'), { forStoring })
    if (!repository) throw repositoryNotFound()
    await checkAccess(repository, command, request, access)
    // After the check of access, so that no other client can use up the requests of the source system. Replays are not requests of it.
    if (request.replayOf === null) checkRate(repository.workspace, command.rule.access === null, rateLimit, config)
    return handlers[name]({ repository, command: inCodePage(command, repository.codePage), exchange }, commandDeps)
  }

  const describeServer = async ({ request, userSlug, workspaceSlug }: Exchange, command: Command): Promise<Answer> => {
    const contRep = command.find('contRep')
    const found = contRep === undefined ? findAll(userSlug, workspaceSlug) : findOne(userSlug, workspaceSlug, contRep)
    const { repositories, workspace } = await found
    checkAddress(workspace.settings.receiverAllowedCidrs, request.sourceIp)
    checkRate(workspace, true, rateLimit, config)
    const pVersion = command.find('pVersion') ?? newestProtocolVersion
    return serverInfo({ repositories, pVersion, asHtml: command.find('resultAs') === 'html', now: request.receivedAt })
  }

  const findOne = async (userSlug: string, workspaceSlug: string, contRep: string): Promise<DescribedRepositories> => {
    const repository = await receivingRepositories.find(userSlug, workspaceSlug, contRep)
    if (!repository) throw repositoryNotFound()
    return { repositories: [repository], workspace: repository.workspace }
  }

  const findAll = async (userSlug: string, workspaceSlug: string): Promise<DescribedRepositories> => {
    const workspace = await workspaces.find(userSlug, workspaceSlug)
    if (!workspace) throw repositoryNotFound()
    const { settings } = await workspaces.findSettings(workspace.id)
    const repositories = await receivingRepositories.list(userSlug, workspaceSlug)
    return { repositories, workspace: { id: workspace.id, settings: workspaceSettings(settings) } }
  }

  return async (exchange, send) => {
    const requestId = exchange.request.id
    try {
      await send(await run(exchange))
    } catch (thrown) {
      if (thrown instanceof ClientGone) {
        log.info({ request_id: requestId, reason: thrown.message }, 'the source system closed the connection, its document is not kept')
        return 'client gone'
      }
      const refusal = toRefusal(thrown)
      receiverLog.refused(exchange, refusal)
      await send(refusalAnswer(refusal, requestId))
    }
    return 'answered'
  }
}

interface DescribedRepositories {
  repositories: RepositorySummary[]
  workspace: { id: string; settings: WorkspaceSettings }
}

const loopDetected = () => new Refusal('loop_detected', 'this relay has sent the document itself; a destination leads back to it')

const repositoryNotFound = () => new Refusal('repository_not_found', 'no such workspace or repository')

/** @throws `Refusal` if the workspace restricts source addresses and this one is not allowed */
const checkAddress = (allowedCidrs: string[], sourceIp: string): void => {
  // The address of an IPv4 client on an IPv6 listener is a mapped one.
  if (allowedCidrs.length > 0 && !isInAnyRange(allowedCidrs, sourceIp))
    throw new Refusal('address_not_allowed', 'this workspace does not accept requests from your address')
}

interface AccessDeps extends SignatureDeps {
  config: SignatureDeps['config'] & Pick<Config, 'RELAY_SIGNATURE_SCOPE'>
}

/** @throws `Refusal` if the command must not be executed on this repository */
const checkAccess = async (
  repository: ReceivingRepository,
  command: Command,
  { sourceIp, signatureTime, isOwn }: Pick<ReceiverRequest, 'sourceIp' | 'signatureTime' | 'isOwn'>,
  deps: AccessDeps,
): Promise<void> => {
  if (!isOwn) checkAddress(repository.workspace.settings.receiverAllowedCidrs, sourceIp)
  if (repository.status !== 'active') throw new Refusal('repository_inactive', 'the repository is inactive')
  const { access, command: name } = command.rule
  if (name === 'mCreate' && !repository.acceptsMcreate) {
    throw new Refusal('command_not_allowed', 'the repository does not accept mCreate')
  }
  // Without signature_verification, the repository ignores any secKey.
  if (isOwn || !repository.signatureVerification || !access) return
  if (await isUnprotected(repository.id, command, access, deps)) return
  await checkSignature(repository, command, access, signatureTime, deps)
}

/**
 * Returns true if the docProt of the document allows this access without a signature. A request with a secKey is judged by its signature
 * anyway. Creating always requires a signature, because the docProt of a new document is chosen by its sender.
 */
const isUnprotected = async (repositoryId: string, command: Command, access: string, { findDocProts, config }: AccessDeps) => {
  const docId = command.find('docId')
  if (config.RELAY_SIGNATURE_SCOPE === 'all' || access === 'c' || docId === undefined || command.find('secKey') !== undefined) return false
  const docProt = (await findDocProts(repositoryId, [docId])).get(docId)
  // A document without docProt is fully protected, and so is one that does not exist: the answer must not tell them apart.
  return typeof docProt === 'string' && !docProt.includes(access)
}
