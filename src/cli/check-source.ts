import { readFile } from 'node:fs/promises'
import { UserError } from '../base/errors.ts'
import { requireCheckable } from '../check-source/check-repository.ts'
import type { Profile } from '../check-source/check.ts'
import { checkOwnRepository } from '../check-source/own-repository.ts'
import { describeEnd, describeResult, htmlOf, junitOf } from '../check-source/report.ts'
import { runChecks, type Report, type RunOptions } from '../check-source/run.ts'
import type { Target } from '../check-source/source.ts'
import { awaitActivation, createIdentity } from '../check-source/throw-away.ts'
import { createRequestSigner } from '../content-server/sign.ts'
import { systemActor } from '../db/audit.ts'
import { signingKeyIssue } from '../security/cms-sign.ts'
import { findWorkspace } from '../workspace/administration.ts'
import { createCertificates } from '../workspace/certificates.ts'
import { createRepositories } from '../workspace/repositories.ts'
import type { CommandContext } from './context.ts'
import { print, printJson, printProgress } from './output.ts'

const formats = ['text', 'json', 'junit', 'html'] as const

export interface CheckSourceOptions {
  url?: string
  repository?: string
  profile: Profile
  throwAway?: true | 'rsa' | 'dsa'
  wait: string
  certificate?: string
  key?: string
  authId?: string
  protocolVersion: string
  timeout: string
  deliver?: boolean
  format: (typeof formats)[number]
}

/** `relay check source`: checks a content server, or a repository of this relay, and prints the report. */
export const checkSource = async (
  own: string | undefined,
  options: CheckSourceOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<Report> => {
  if ((own === undefined) === (options.url === undefined)) {
    throw new UserError('Name a repository of this relay, as in acme/invoices/Z1, or the address of another content server with --url.')
  }
  const { format } = options
  const run: RunOptions = {
    profile: options.profile,
    timeoutMs: positive('--timeout', options.timeout) * 1_000,
    signal,
    onResult: (result) => {
      // What was not checked is counted at the end.
      if (format === 'text' && result.status !== 'not_checked') for (const line of describeResult(result)) print(line)
    },
  }
  const report = own === undefined ? await runChecks(await foreignTarget(options, signal), run) : await checkOwn(own, options, context, run)
  const output = {
    text: () => describeEnd(report).forEach(print),
    json: () => printJson(report),
    junit: () => print(junitOf(report)),
    html: () => print(htmlOf(report)),
  }
  output[format]()
  return report
}

const positive = (name: string, text: string): number => {
  const value = Number(text)
  if (!(value > 0)) throw new UserError(`${name} must be a number greater than 0.`)
  return value
}

const addressOf = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) throw new UserError(`${text} is not an address of the form http://host:port/script.`)
  if (url.search || url.hash) throw new UserError('The address ends before the question mark: commands and parameters are added to it.')
  return url
}

const foreignTarget = async (options: CheckSourceOptions, signal: AbortSignal): Promise<Target> => {
  const { url, repository, protocolVersion, certificate, key, authId, throwAway } = options
  if (repository === undefined) throw new UserError('--url needs --repository, the name of a content repository of that server.')
  const target: Target = {
    url: addressOf(url!),
    contRep: repository,
    pVersion: protocolVersion,
    stranger: async () => (await createIdentity('rsa')).signer,
  }
  if (throwAway !== undefined) {
    if (certificate !== undefined) throw new UserError('Use either --throw-away or --certificate.')
    const identity = await createIdentity(throwAway === true ? 'rsa' : throwAway)
    const { authId: name } = identity.signer
    const ask = () =>
      printProgress(
        `A certificate was sent. Activate it for repository ${repository}: authId ${name}, SHA-256 ${identity.fingerprintSha256}. ` +
          'Delete it after the run: the protocol has no command for that. Waiting; Ctrl-C stops.',
      )
    const waiting = awaitActivation(identity, { waitMs: positive('--wait', options.wait) * 60_000, signal, ask })
    return { ...target, signer: identity.signer, throwAway: waiting }
  }
  if (certificate === undefined && key === undefined) return target
  if (certificate === undefined || key === undefined || authId === undefined) {
    throw new UserError('Signing needs --certificate, --key and --auth-id, the name with which the certificate was sent.')
  }
  const signingKey = { certificate: await read(certificate), privateKey: await read(key) }
  const issue = signingKeyIssue(signingKey)
  if (issue !== undefined) throw new UserError(`The run cannot sign: ${issue}.`)
  return { ...target, signer: createRequestSigner({ ...signingKey, authId }) }
}

const read = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((thrown: unknown) => {
    throw new UserError(`${path} cannot be read.`, { cause: thrown })
  })

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
      { certificates: createCertificates(db), actor: systemActor },
      run,
    )
  })
}

const wouldDeliver = (repoId: string, destinations: string[]) =>
  `The documents of the check would be delivered like all others, from repository ${repoId} to ${destinations.join(', ')}. ` +
  'Repeat the command with --deliver, or check a repository that leads to a destination for tests.'
