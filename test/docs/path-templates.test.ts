import { readFile } from 'node:fs/promises'
import { finalNames, pathTemplatesPage } from '../../docs/real-names.ts'
import { connectorTypes } from '../../src/connectors/index.ts'
import { connectionSettings } from '../../src/domain/connection-settings.ts'
import { pathSegment, planDeliveries } from '../../src/domain/fan-out.ts'
import { placeholders, placeholderValues } from '../../src/domain/template.ts'
import { realNames } from '../connectors/names.ts'

const page = await readFile(new URL('../../docs/path-templates.md', import.meta.url), 'utf8')

const document = {
  repoId: 'Z1',
  docId: '005056B5A3F21EEFA9C1D04F7B6E8C11',
  compId: 'data',
  contentType: 'application/pdf',
  sizeBytes: 1,
  erpObjectType: 'BKPF',
  erpObjectId: '100019000000012026',
  arObject: 'FIIINVOICE',
  fileName: null,
  description: null,
  fields: { vendor_name: 'Acme/Co' },
  receivedAt: new Date('2026-11-22T09:00:00Z'),
}

test('the page explains every placeholder with a true example, and every kind', () => {
  const values = placeholderValues(document)
  for (const name of placeholders) {
    const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`\`{${name}}\``))
    expect(row).toContain(`\`${values[name]}\``)
  }
  expect(page).toContain(`\`${pathSegment(values['meta.vendor_name']!)}\` for \`{meta.vendor_name}\``)
  for (const kind of connectorTypes) expect(page).toMatch(new RegExp(`^\\|[^|]*\\b${kind}\\b`, 'm'))
})

test('the page has the names of real files as the relay makes them', () => {
  expect(pathTemplatesPage()).toBe(page)
  for (const [sent, kept, fileName] of realNames) expect(finalNames(sent)).toMatchObject({ kept, fileName })
})

test.each([
  [document.docId, `Z1/${document.docId}/data`],
  ['a/b', 'Z1/a%2Fb/data'],
  ['a%2Fb', 'Z1/a%252Fb/data'],
])('the default path of the document %s is %s', (docId, path) => {
  const route = {
    connectionId: 'c',
    isActive: true,
    settings: connectionSettings({}),
    destination: { id: 'd', name: 'd', connector: 'sftp' },
  }
  expect(planDeliveries([route], { ...document, docId })).toMatchObject([{ path }])
})
