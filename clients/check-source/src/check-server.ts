import { readFile } from 'node:fs/promises'
import { UserError } from '../../../src/base/errors.ts'
import { print, printJson, printProgress } from '../../../src/cli/output.ts'
import { createRequestSigner } from '../../../src/content-server/sign.ts'
import { signingKeyIssue } from '../../../src/security/cms-sign.ts'
import type { CheckOptions, ServerCheckOptions } from './check-options.ts'
import { describeEnd, describeResult, htmlOf, junitOf } from './report.ts'
import { isGood, runChecks, type Report, type RunOptions } from './run.ts'
import type { Target } from './source.ts'
import { awaitActivation, createIdentity, throwAwayOf, type Identity } from './throw-away.ts'

/** Checks any content server, and prints the report. Needs nothing of a relay: the package of clients/check-source uses it alone. */
export const checkServer = async (options: ServerCheckOptions, signal: AbortSignal): Promise<void> => {
  const target = await targetOf(options, signal)
  await printReport(options, signal, (run) => runChecks(target, run))
}

/** Prints the report of a check in the form that the options name, and sets the exit status to 1 unless it is good. */
export const printReport = async (
  { profile, timeout, format }: CheckOptions,
  signal: AbortSignal,
  check: (run: RunOptions) => Promise<Report>,
): Promise<void> => {
  const report = await check({
    profile,
    timeoutMs: positive('--timeout', timeout) * 1_000,
    signal,
    onResult: (result) => {
      // What was not checked is counted at the end.
      if (format === 'text' && result.status !== 'not_checked') for (const line of describeResult(result)) print(line)
    },
  })
  const output = {
    text: () => describeEnd(report).forEach(print),
    json: () => printJson(report),
    junit: () => print(junitOf(report)),
    html: () => print(htmlOf(report)),
  }
  output[format]()
  if (!isGood(report)) process.exitCode = 1
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

const targetOf = async (options: ServerCheckOptions, signal: AbortSignal): Promise<Target> => {
  const { url, repository, protocolVersion, certificate, key, authId, throwAway } = options
  if (repository === undefined) throw new UserError('--url needs --repository, the name of a content repository of that server.')
  const target: Target = {
    url: addressOf(url),
    contRep: repository,
    pVersion: protocolVersion,
    stranger: async () => (await createIdentity('rsa')).signer,
  }
  if (throwAway !== undefined) {
    if (certificate !== undefined) throw new UserError('Use either --throw-away or --certificate.')
    const identity = await createIdentity(throwAway === true ? 'rsa' : throwAway)
    const ask = ({ signer: { authId: name }, fingerprintSha256 }: Identity) =>
      printProgress(
        `A certificate was sent. Activate it for repository ${repository}: authId ${name}, SHA-256 ${fingerprintSha256}. ` +
          'Delete it after the run: the protocol has no command for that. Waiting; Ctrl-C stops.',
      )
    const activate = awaitActivation({ waitMs: positive('--wait', options.wait) * 60_000, signal, ask })
    return { ...target, signer: identity.signer, throwAway: throwAwayOf(identity, activate) }
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
