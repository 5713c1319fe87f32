import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectorTypes } from '../../src/connectors/index.ts'

// Each kind's page lists the servers that it was run against. A row that is rebuilt names the report, and each row the tests that run it.

const root = fileURLToPath(new URL('../../', import.meta.url))
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')
const heading = '## Servers that it was run against\n'

const rowsOf = (kind: string): string[][] => {
  const page = textOf(`docs/connectors/${kind}.md`)
  const section = page.split(heading)[1]?.split(/^## /m)[0] ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('| '))
  return lines.slice(1).map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')))
}

const report =
  /\]\(https:\/\/(?:github\.com\/([\w.-]+\/[\w.-]+)\/issues\/\d+|www\.rfc-editor\.org\/\S+|(?:learn\.microsoft|docs\.aws\.amazon)\.com\/\S+)\)/g

test.each(connectorTypes)('%s lists servers with the tests that run against them, and the reports of those that were rebuilt', (kind) => {
  const rows = rowsOf(kind)
  expect(rows.length).toBeGreaterThan(1)
  for (const [server = '', behaviour = '', tests = ''] of rows) {
    expect([server, behaviour]).not.toContain('')
    if (server.startsWith('rebuilt:')) expect([server, server.match(report)]).toEqual([server, expect.anything()])
    const files = [...tests.matchAll(/`([^`]+)`/g)].map(([, file = '']) => join('test/connectors', kind, file))
    expect([server, files.length > 0, files.filter((file) => !existsSync(join(root, file)))]).toEqual([server, true, []])
  }
})

test('the versions of servers are those that the tests install', () => {
  const tools = textOf('test/support/tools.ts')
  const versionOf = (wanted: RegExp) => wanted.exec(tools)?.[1]
  expect(rowsOf('objstore')[0]![0]).toContain(`versitygw ${versionOf(/versitygw@v(\d+\.\d+)\.\d+/)},`)
  expect(rowsOf('blob')[0]![0]).toContain(`Azurite ${versionOf(/name: 'azurite',[^}]*?version: '(\d+\.\d+)\./)},`)
})
