// `npm run docs` writes what is made from the code; with --check it says what is not as the code has it.
import { readFile, writeFile } from 'node:fs/promises'
import { schemaTypes } from '../clients/typescript/generate.ts'
import { describeApi } from '../src/http/description.ts'
import { allConnectors } from '../src/connectors/index.ts'
import { connectorPages } from './connectors.ts'
import { configurationPage } from './configuration.ts'
import { openApiFile } from './openapi.ts'

const made: Record<string, string> = {
  'docs/configuration.md': configurationPage(),
  ...connectorPages(allConnectors()),
  'openapi.json': openApiFile(),
  'clients/typescript/src/schema.ts': await schemaTypes(describeApi()),
}

for (const [path, text] of Object.entries(made)) {
  const file = new URL(`../${path}`, import.meta.url)
  if (!process.argv.includes('--check')) {
    await writeFile(file, text)
  } else if ((await readFile(file, 'utf8').catch(() => '')) !== text) {
    console.error(`${path} is not as the code has it: npm run docs writes it anew`)
    process.exitCode = 1
  }
}
