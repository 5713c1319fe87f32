import type { ServerCheckOptions } from '../../clients/check-source/src/check-options.ts'
import { checkServer, printReport } from '../../clients/check-source/src/check-server.ts'
import type { Report, RunOptions } from '../../clients/check-source/src/run.ts'
import { createCertificates } from '../access/certificates.ts'
import { UserError } from '../base/errors.ts'
import { requireCheckable } from '../check-source/check-repository.ts'
import { checkOwnRepository } from '../check-source/own-repository.ts'
import { systemActor } from '../db/audit.ts'
import { createEndCheck } from '../delivery/end-check.ts'
import { createRepositories } from '../routing/repositories.ts'
import { findWorkspace } from '../workspace/administration.ts'
import type { CommandContext } from './context.ts'

export interface CheckSourceOptions extends Omit<ServerCheckOptions, 'url'> {
  url?: string
  deliver?: boolean
}

/** `relay check source`: checks a content server, or a repository of this relay, and prints the report. */
export const checkSource = async (
  own: string | undefined,
  { url, ...options }: CheckSourceOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> => {
  if (own !== undefined && url === undefined) return printReport(options, signal, (run) => checkOwn(own, options, context, run))
  if (own === undefined && url !== undefined) return checkServer({ ...options, url }, signal)
  throw new UserError('Name a repository of this relay, as in acme/invoices/Z1, or the address of another content server with --url.')
}

const checkOwn = async (
  name: string,
  { deliver = false, repository: named, throwAway, certificate }: CheckSourceOptions,
  context: CommandContext,
  run: RunOptions,
): Promise<Report> => {
  const [, workspaceName, repoId] = /^([^/]+\/[^/]+)\/(.+)$/.exec(name) ?? []
  if (workspaceName === undefined || repoId === undefined) throw new UserError(`${name} is not of the form acme/invoices/Z1.`)
  if (named ?? throwAway ?? certificate) {
    throw new UserError('A repository of this relay needs no --repository, --throw-away and --certificate: the run knows how it is set up.')
  }
  const baseUrl = await context.baseUrl()
  if (baseUrl === undefined) throw new UserError('Set RELAY_BASE_URL to the address of the relay.')
  return context.inDatabase(async (db) => {
    const [workspace, repositories] = [await findWorkspace(db, workspaceName), createRepositories(db)]
    const repository = await repositories.findByRepoId(workspace.id, repoId)
    if (!repository) throw new UserError(`There is no repository ${repoId} in ${workspaceName}.`)
    requireCheckable(repository)
    const connections = await repositories.listConnections(repository.id)
    const destinations = connections.filter(({ status }) => status === 'active').map(({ destinationName }) => destinationName)
    if (!deliver) throw new UserError(wouldDeliver(repoId, [...new Set(destinations)]))
    return checkOwnRepository(
      {
        workspaceId: workspace.id,
        repositoryId: repository.id,
        repoId,
        signatureVerification: repository.signatureVerification,
        url: new URL(`${baseUrl}/receiver/${workspaceName}`),
      },
      { certificates: createCertificates(db), actor: systemActor, endCheck: createEndCheck(db) },
      run,
    )
  })
}

const wouldDeliver = (repoId: string, destinations: string[]) =>
  `The documents of the check would be delivered like all others, from repository ${repoId} to ${destinations.join(', ')}. ` +
  'Repeat the command with --deliver, or check a repository that leads to a destination for tests.'
