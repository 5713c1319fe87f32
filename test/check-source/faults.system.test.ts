import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import pLimit from 'p-limit'
import type { Profile } from '../../src/check-source/check.ts'
import { checksOf } from '../../src/check-source/checks.ts'
import { runChecks, type Report } from '../../src/check-source/run.ts'
import { createIdentity } from '../../src/check-source/throw-away.ts'
import { createAuthority } from '../support/certificates.ts'
import { serverFaults, type ServerFault } from '../support/old-content-server-faults.ts'
import { startOldContentServer } from '../support/old-content-server.ts'

// Each run uses a core. More at a time only make each other slow, until a request times out.
const limited = pLimit(4)
const [identity, stranger] = await Promise.all([createIdentity('rsa'), createIdentity('rsa')])

/** Faults that keep requests waiting. Three waits end such a run, so a wait is short, and no other run of this file may prolong an answer. */
const waitingFaults = new Set<ServerFault>(['never_answers', 'stops_midway'])

interface Options {
  profile?: Profile
  isSigned?: boolean
  /** Command that answers 500 once the run has access. Those that come before it always do. */
  failing?: string
}

/** Checks the independent content server with these faults. @returns the report, the ids of the failed checks, and the documents that are left */
const checkServer = async (faults: ServerFault[], { profile = 'wire', isSigned = false, failing }: Options = {}) => {
  await using server = await startOldContentServer({ isSigned, faults })
  await using front = await startFront(server, failing)
  const activated = async () => {
    for (const certificate of server.certificates) certificate.isActive = true
  }
  const signing = isSigned ? { signer: identity.signer, throwAway: { ...identity, activated } } : {}
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

// Every byte that is read is wrong.
const byAllReads = 'by all reads'

// A server that is slow passes.
const failedChecks: Record<Exclude<ServerFault, 'slow'>, string[] | typeof byAllReads> = {
  accepts_any_signature: ['put-cert-inert', 'signature-doc-id', 'signature-stranger'],
  accepts_expired: ['signature-expired'],
  accepts_garbage_certificate: ['put-cert-garbage'],
  accepts_unsigned: ['signature-missing'],
  activates_certificates: ['put-cert-inert'],
  append_replaces: ['append'],
  closes_midway: ['create-put', 'create-exists', 'create-exists-component'],
  create_adds: ['create-exists', 'm-create-exists'],
  create_overwrites: ['create-exists', 'create-exists-component', 'm-create-exists'],
  damages_byte: byAllReads,
  exists_is_404: ['create-exists', 'create-exists-component', 'm-create-exists'],
  fails: [
    'server-info',
    'server-info-all',
    'server-info-plain',
    'server-info-html',
    'server-info-unknown',
    'server-time',
    'get-cert',
    'put-cert-garbage',
    'access',
  ],
  half_created: ['create-whole'],
  ignores_access_mode: ['signature-access'],
  ignores_range: ['get-range', 'get-range-open'],
  info_size: ['info', 'component-headers'],
  keeps_deleted: ['delete-document', 'delete-component', 'delete-method'],
  loses_charset: ['content-type-kept', 'get', 'doc-get'],
  loses_component: ['create-post', 'content-type-kept', 'bytes-kept', 'component-headers', 'doc-get'],
  never_answers: ['server-info', 'server-info-all', 'server-info-plain'],
  no_error_description: ['put-cert-garbage', 'error-description'],
  plus_is_space: ['plus-sign'],
  range_excludes_end: ['get-range', 'get-range-open'],
  range_is_206: ['get-range', 'get-range-open'],
  refuses_delete: ['delete-document', 'delete-component', 'delete-method'],
  search_offset: ['search', 'search-case', 'search-backwards'],
  stops_midway: ['create-put', 'create-exists', 'create-exists-component'],
  swaps_dates: ['dates'],
  truncates: ['mebibyte-kept'],
  unknown_is_200: [
    'create-exists-component',
    'create-whole',
    'info-comp-id',
    'not-found',
    'update-unknown',
    'delete-document',
    'delete-method',
    'error-description',
    'plus-sign',
    'search-unknown',
  ],
  update_drops_others: ['update-put'],
  wrong_part_length: ['create-post', 'content-type-kept', 'bytes-kept', 'component-headers', 'doc-get'],
}

// OpenSSL verifies each signature in a process of its own, so these runs are shorter.
const signatureFaults = new Set<ServerFault>([
  'accepts_any_signature',
  'accepts_expired',
  'accepts_unsigned',
  'activates_certificates',
  'ignores_access_mode',
])

describe('a content server that is not ours', () => {
  test.each([
    ['unsigned', false],
    ['signed', true],
  ])('passes every check %s, and has no document left', async (_, isSigned) => {
    const { report, failed, documents } = await checkServer([], { profile: 'full', isSigned })
    expect({ failed, left: report.left_behind, documents }).toEqual({ failed: [], left: [], documents: [] })
    if (isSigned) expect(report.not_checked).toBe(0)
  })
})

describe('a content server that is broken in one way', () => {
  test('has a line about it in the report, and about nothing else', async () => {
    const faults = Object.keys(failedChecks) as (keyof typeof failedChecks)[]
    const check = async (fault: ServerFault) => {
      const isSigned = signatureFaults.has(fault)
      const { failed } = await checkServer([fault], isSigned ? { isSigned, profile: 'core' } : {})
      return [fault, failed.length > 15 ? byAllReads : failed] as const
    }
    const waiting = await Promise.all(faults.filter((fault) => waitingFaults.has(fault)).map(check))
    const others = await limited.map(
      faults.filter((fault) => !waitingFaults.has(fault)),
      check,
    )
    const found = Object.fromEntries([...waiting, ...others])
    expect(found).toEqual(failedChecks)
    expect([...faults, 'slow'].toSorted()).toEqual(Object.keys(serverFaults).toSorted())
  })

  test('and whose certificate nobody trusts is told how it can be trusted', async () => {
    await using authority = await createAuthority()
    await using server = createTlsServer(await authority.issue('IP:127.0.0.1'), (_, answer) => answer.end())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/archive`)
    const { results } = await runChecks(
      { url, contRep: 'Z1', pVersion: '0045', stranger: async () => stranger.signer },
      { profile: 'smoke' },
    )
    expect(results.find(({ id }) => id === 'server-info')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('unable to verify the first certificate'),
      remedy: expect.stringContaining('set NODE_EXTRA_CA_CERTS'),
    })
  })

  test('and keeps what it should delete is told of each document', async () => {
    const { report, documents } = await checkServer(['keeps_deleted'], { profile: 'smoke' })
    expect(report.left_behind.map((docId) => `Z1/${docId}`).toSorted()).toEqual(documents.toSorted())
    expect(documents).not.toEqual([])
  })

  test('every check fails if its command does', async () => {
    const open = [
      'serverInfo',
      'getCert',
      'putCert',
      'create',
      'info',
      'get',
      'docGet',
      'update',
      'append',
      'delete',
      'search',
      'attrSearch',
    ]
    const unsigned = [...open, 'mCreate'].map((failing) => ({ failing }))
    const signed = ['putCert', 'get', 'create'].map((failing) => ({ failing, isSigned: true }))
    const runs = await limited.map([...unsigned, ...signed], (options) => checkServer([], options))
    // The check of an inactive certificate comes before access.
    const failed = new Set([...runs.flatMap((run) => run.failed), 'put-cert-inert'])
    expect(checksOf('wire').flatMap(({ id }) => (failed.has(id) ? [] : [id]))).toEqual([])
  })
})
