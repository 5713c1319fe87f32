import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Profile } from '../../../clients/check-source/src/check.ts'
import { runChecks, type Report } from '../../../clients/check-source/src/run.ts'
import { createIdentity, throwAwayOf } from '../../../clients/check-source/src/throw-away.ts'
import type { ServerFault } from '../../support/old-content-server-faults.ts'
import { startOldContentServer } from '../../support/old-content-server.ts'

const [identity, stranger] = await Promise.all([createIdentity('rsa'), createIdentity('rsa')])

/** Faults that keep requests waiting. Three waits end such a run, so a wait is short, and no other run of its file may prolong an answer. */
export const waitingFaults = new Set<ServerFault>(['never_answers', 'stops_midway'])

interface Options {
  profile?: Profile
  isSigned?: boolean
  /** Command that answers 500 once the run has access. Those that come before it always do. */
  failing?: string
}

/** Checks the independent content server with these faults. @returns the report, the ids of the failed checks, and the documents that are left */
export const checkServer = async (faults: ServerFault[], { profile = 'wire', isSigned = false, failing }: Options = {}) => {
  await using server = await startOldContentServer({ isSigned, faults })
  await using front = await startFront(server, failing)
  const activated = async () => {
    for (const certificate of server.certificates) certificate.isActive = true
  }
  const signing = isSigned ? { signer: identity.signer, throwAway: throwAwayOf(identity, activated) } : {}
  const target = { url: new URL(front.url), contRep: 'Z1', pVersion: '0045', stranger: async () => stranger.signer, ...signing }
  const report = await runChecks(target, {
    profile,
    timeoutMs: faults.some((fault) => waitingFaults.has(fault)) ? 5_000 : 30_000,
    onResult: ({ id }) => (front.isFailing ||= id === 'access'),
  })
  return { report, failed: failedOf(report), documents: [...server.documents.keys()] }
}

const failedOf = ({ results }: Report) => results.filter(({ status }) => status === 'failed').map(({ id }) => id)

/** Starts a proxy that answers one command with 500, and passes on the others. */
const startFront = async ({ port, url }: { port: number; url: string }, failing: string | undefined) => {
  const state = { url, isFailing: failing !== 'info' }
  if (failing === undefined) return { ...state, [Symbol.asyncDispose]: async () => {} }
  const front = createServer((asked, answer) => {
    if (state.isFailing && asked.url!.split(/[?&]/)[1] === failing) {
      asked.resume().once('end', () => answer.writeHead(500).end())
      return
    }
    const { method, url: path, headers } = asked
    const passed = httpRequest({ port, host: '127.0.0.1', method: method!, path: path!, headers }, (theirs) => {
      answer.writeHead(theirs.statusCode!, theirs.statusMessage, theirs.rawHeaders)
      theirs.pipe(answer)
    })
    asked.pipe(passed)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  const { port: own } = front.address() as AddressInfo
  state.url = url.replace(String(port), String(own))
  return Object.assign(state, { [Symbol.asyncDispose]: async () => front.close().closeAllConnections() })
}
