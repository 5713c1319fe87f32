// `npm run docs` writes the generated files; with --check it reports those that are out of date.
import { readFile, writeFile } from 'node:fs/promises'
import { workspacesSchema } from '../src/cli/apply/workspaces-schema.ts'
import { createConnectors } from '../src/connectors/index.ts'
import { businessObjectsPage } from './business-objects.ts'
import { configurationPage } from './configuration.ts'
import { conformancePage } from './conformance.ts'
import { connectorPages } from './connectors.ts'
import { deliveriesPage } from './deliveries.ts'
import { errorsPage } from './errors.ts'
import { generatedJson } from './generated-json.ts'
import { withHardeningChecklist } from './hardening.ts'
import { copiesInChart, valuesSchema } from './helm-chart.ts'
import { securityPage } from './levels.ts'
import { mcpPage } from './mcp.ts'
import { openApiFile } from './openapi.ts'
import { pathTemplatesPage } from './real-names.ts'
import { architecturePage, contributingPage } from './rooms.ts'

const made: Record<string, string> = {
  'CONTRIBUTING.md': contributingPage(),
  'docs/architecture.md': architecturePage(),
  'docs/business-objects.md': businessObjectsPage(),
  'docs/configuration.md': configurationPage(),
  'docs/conformance.md': conformancePage(),
  'docs/deliveries.md': deliveriesPage(),
  'docs/errors.md': errorsPage(),
  'docs/mcp.md': mcpPage(),
  'docs/path-templates.md': pathTemplatesPage(),
  'docs/security.md': withHardeningChecklist(securityPage()),
  ...connectorPages(createConnectors().all),
  'docs/relay.schema.json': generatedJson(workspacesSchema()),
  'openapi.json': openApiFile(),
  'deploy/helm/document-relay/values.schema.json': valuesSchema(),
  ...(await copiesInChart()),
}

for (const [path, text] of Object.entries(made)) {
  const file = new URL(`../${path}`, import.meta.url)
  if (!process.argv.includes('--check')) {
    await writeFile(file, text)
  } else if ((await readFile(file, 'utf8').catch(() => '')) !== text) {
    console.error(`${path} is out of date: run npm run docs`)
    process.exitCode = 1
  }
}
