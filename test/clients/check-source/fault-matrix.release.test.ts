import pLimit from 'p-limit'
import { checksOf } from '../../../clients/check-source/src/checks.ts'
import { serverFaults, type ServerFault } from '../../support/old-content-server-faults.ts'
import { checkServer, waitingFaults } from './check-server.ts'

// Each run uses a core. More at a time only make each other slow, until a request times out.
const limited = pLimit(4)

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
  bare_line_feeds: ['server-info', 'server-info-all', 'server-time', 'line-ends'],
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
  keeps_transfer_encoding: ['part-encodings'],
  loses_charset: ['content-type-kept', 'get', 'doc-get'],
  loses_component: ['create-post', 'content-type-kept', 'bytes-kept', 'component-headers', 'doc-get'],
  names_decoded_twice: ['comp-ids-encoded'],
  names_in_bytes: ['comp-ids-long'],
  names_utf8_only: ['comp-ids-windows'],
  never_answers: ['server-info', 'server-info-all', 'server-info-plain'],
  no_error_description: ['put-cert-garbage', 'error-description'],
  plus_is_space: ['plus-sign'],
  range_excludes_end: ['get-range', 'get-range-open'],
  range_is_206: ['get-range', 'get-range-open'],
  refuses_delete: ['delete-document', 'delete-component', 'delete-method'],
  refuses_empty_parameters: ['empty-parameters'],
  search_offset: ['search', 'search-case', 'search-backwards'],
  stops_midway: ['create-put', 'create-exists', 'create-exists-component'],
  swaps_dates: ['dates'],
  takes_first_certificate: ['put-cert-chain'],
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
  'takes_first_certificate',
])

describe('a content server that is broken in one way', () => {
  test('has a line about it in the report, and about nothing else', async () => {
    const faults = Object.keys(failedChecks) as (keyof typeof failedChecks)[]
    const check = async (fault: ServerFault) => {
      const isSigned = signatureFaults.has(fault)
      const signed = { isSigned: true, profile: fault === 'takes_first_certificate' ? ('wire' as const) : ('core' as const) }
      const { failed } = await checkServer([fault], isSigned ? signed : {})
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
