import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { runChecks } from '../../../clients/check-source/src/run.ts'
import { createAuthority } from '../../support/certificates.ts'
import { checkServer } from './check-server.ts'

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
  test('and whose certificate nobody trusts is told how it can be trusted', async () => {
    await using authority = await createAuthority()
    await using server = createTlsServer(await authority.issue('IP:127.0.0.1'), (_, answer) => answer.end())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/archive`)
    const { results } = await runChecks(
      { url, contRep: 'Z1', pVersion: '0045', stranger: async () => Promise.reject(new Error('not asked')) },
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
})
