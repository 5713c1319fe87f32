import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { checkAdvisories, checkSavedAdvisories } from '../../script/audit.ts'

// npm compares the versions, in a process of its own.

const flaw = { url: 'https://example.com/1', title: 'Flaw' }

test('a saved advisory of high severity for an installed version is reported', async () => {
  const advisories = { koa: [{ ...flaw, id: 1, severity: 'high', vulnerable_versions: '>=1.0.0' }] }
  const result = await checkSavedAdvisories(JSON.stringify(advisories))
  expect(result).toMatchObject({ kind: 'vulnerable', lines: expect.arrayContaining([expect.stringContaining('koa : high: Flaw')]) })
})

test('saved advisories of low severity, for other versions and for packages of the tests are not reported', async () => {
  const advisories = {
    koa: [{ ...flaw, id: 2, severity: 'low', vulnerable_versions: '>=1.0.0' }],
    pg: [{ ...flaw, id: 3, severity: 'critical', vulnerable_versions: '<1.0.0' }],
    jest: [{ ...flaw, id: 4, severity: 'critical', vulnerable_versions: '>=1.0.0' }],
  }
  expect(await checkSavedAdvisories(JSON.stringify(advisories))).toEqual({ kind: 'clean' })
})

test('a service that refuses to answer is skipped, which is not clean', async () => {
  const server = createServer((_, response) => response.writeHead(405).end())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const result = await checkAdvisories(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  expect(result).toEqual({ kind: 'skipped', reason: expect.stringContaining('status 405') })
  server.closeAllConnections()
  server.close()
})
