import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createConnectors } from '../../../src/connectors/index.ts'
import { createPostgresStore } from '../../../src/content/postgres.ts'
import { runProgram } from '../../../src/programs/programs.ts'
import { startApi } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { createFolder } from '../../support/folder.ts'
import { fullOr } from '../../support/full-run.ts'
import { linesOfLevel } from '../../support/log-lines.ts'
import { share } from '../../support/share.ts'
import { insertDocument } from '../insert-document.ts'
import { wire } from '../objstore.ts'

// Programs of others read openapi.json: a validator, a generator of clients, and a tester that derives requests from it.

const description = fileURLToPath(new URL('../../../openapi.json', import.meta.url))
const lintRules = fileURLToPath(new URL('../../support/api-tools/spectral.yaml', import.meta.url))
const fuzzerConfig = fileURLToPath(new URL('../../support/api-tools/schemathesis.toml', import.meta.url))
// A fixed seed generates the same requests in every run. Set TEST_SEED to try others.
const seed = process.env['TEST_SEED'] ?? '20261122'

const database = share(await createTestDatabase())
// schemathesis also tries each operation with wrong keys.
const api = share(await startApi(database.db, { variables: { RELAY_WRONG_KEYS_PER_MINUTE: '1000000' } }))
const acme = await api.tenant('acme/prod')
const { path: workDir } = share(await createFolder())

// A limit for programs that hang: they take 20 s on an idle machine.
const timeoutMs = fullOr(1_200_000, 300_000)

const python = (args: string[], env: Record<string, string> = {}) => {
  const tools = process.env['TEST_API_TOOLS_DIR']
  if (!tools) throw new Error('TEST_API_TOOLS_DIR is not set: the set-up of the tests could not install the checks of the API description')
  const variables = { PATH: process.env['PATH'] ?? '', HOME: workDir, PYTHONPATH: [workDir, tools].join(':'), PYTHONDONTWRITEBYTECODE: '1' }
  const options = { env: { ...variables, ...env }, timeout: timeoutMs, cwd: workDir, maxBuffer: 16 * 1024 * 1024 }
  return new Promise<string>((resolve, reject) => {
    execFile('python3', args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`python3 ${args.slice(0, 3).join(' ')}: exit code ${error.code}\n${stdout}${stderr}`))
      else resolve(stdout + stderr)
    })
  })
}

test('spectral has nothing to complain of in openapi.json', async () => {
  const spectral = process.env['TEST_SPECTRAL_BIN']
  if (!spectral) throw new Error('TEST_SPECTRAL_BIN is not set: the set-up of the tests could not install spectral')
  const output = await runProgram(spectral, ['lint', '--fail-severity', 'hint', '--ruleset', lintRules, description], {
    env: { PATH: process.env['PATH'] ?? '', HOME: workDir },
    timeoutMs,
  })
  expect(output).toContain('No results')
})

test('openapi-spec-validator finds openapi.json valid', async () => {
  expect(await python(['-m', 'openapi_spec_validator', description])).toContain('OK')
})

const clientProgram = `
import importlib, json, pkgutil, re, sys
import relay_client
for module in pkgutil.walk_packages(relay_client.__path__, "relay_client."):
    importlib.import_module(module.name)
from relay_client import AuthenticatedClient, models
from relay_client.api.destinations import create_destination, list_destinations
from relay_client.api.documents import get_document, get_document_content, list_documents, retry_document
from relay_client.api.settings import get_settings

url, key, document_id = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
bodies = json.load(open(sys.argv[0] + ".json"))
created = []
for body in bodies:
    kind = "".join(part.title() for part in re.split("[-_]", body["connector_type"]))
    model = getattr(models, "DestinationInput" + kind).from_dict(body)
    created.append(create_destination.sync(client=client, body=model).data.attributes.connector_type)
pages = [list_destinations.sync(client=client, page=page, per_page=3) for page in (1, 2)]
print(json.dumps({
    "created": [str(kind) for kind in created],
    "listed": [[len(page.data), page.meta.total > 3] for page in pages],
    "document": get_document.sync(document_id, client=client).data.attributes.comp_id,
    "documents": len(list_documents.sync(client=client, status=models.DocumentStatusInput.DELIVERED).data),
    "content": get_document_content.sync(document_id, client=client).payload.read().decode(),
    "settings": get_settings.sync(client=client).data.attributes.max_retries,
    "refusal": retry_document.sync(document_id, client=client).error.code,
}))
`

test('openapi-python-client generates a client for all operations, which works', async () => {
  const options = { workDir, config: join(workDir, 'generator.json'), program: join(workDir, 'use.py') }
  await writeFile(options.config, JSON.stringify({ post_hooks: [], package_name_override: 'relay_client' }))
  const target = join(workDir, 'relay_client')
  const generate = [
    'generate',
    '--path',
    description,
    '--output-path',
    target,
    '--meta',
    'none',
    '--config',
    options.config,
    '--fail-on-warning',
  ]
  expect(await python(['-m', 'openapi_python_client', ...generate])).not.toContain('WARNING')

  const { repositoryId, destinationId, connectionId } = await wire(acme, 'PY')
  const content = await createPostgresStore(database.db).write(acme.id, Readable.from([Buffer.from('hello')]))
  await database.db.transaction((trx) => content.own(trx))
  const deliveries = [{ destinationId, connectionId, status: 'delivered' as const }]
  const row = { workspaceId: acme.id, repositoryId, repoId: 'PY', status: 'delivered' as const, contentId: content.id, deliveries }
  const id = await insertDocument(database.db, row)

  const kinds = createConnectors().all.filter(({ kind }) => !['drive', 'directory'].includes(kind))
  const bodies = kinds.map(({ kind, example }) => ({ name: kind, connector_type: kind, ...example }))
  await writeFile(options.program, clientProgram)
  await writeFile(`${options.program}.json`, JSON.stringify(bodies))
  const output = await python([options.program, api.baseUrl + acme.path, acme.keys.admin, id])
  expect(JSON.parse(output)).toEqual({
    created: kinds.map(({ kind }) => kind),
    listed: [
      [3, true],
      [3, true],
    ],
    document: 'data',
    documents: 1,
    content: 'hello',
    settings: 10,
    refusal: 'nothing_to_retry',
  })
})

test(
  'schemathesis finds no request that the API answers otherwise than openapi.json says',
  async () => {
    // The systematic phase sends 2,000 requests more; it runs before a release.
    const phases = fullOr(1, 0) === 1 ? 'examples,coverage,fuzzing' : 'examples,fuzzing'
    process.stdout.write(`schemathesis: seed ${seed}, phases ${phases}\n`)
    const generation = [
      '--seed',
      seed,
      '--phases',
      phases,
      '--max-examples',
      String(fullOr(20, 3)),
      '--no-shrink',
      '--generation-database',
      'none',
    ]
    // Tests of destinations would connect to generated addresses. Keys are excluded, because the tester would revoke its own.
    const scope = ['--exclude-path-regex', '/test$|^/api-keys', '--suppress-health-check', 'all', '--warnings', 'off']
    // Whether a value is valid is not decided by its schema alone: ids have to exist, versions have to match. A full run tries it, and its
    // findings have to be judged.
    const checks = fullOr(1, 0) === 1 ? [] : ['--exclude-checks', 'positive_data_acceptance,negative_data_rejection']
    const target = ['--url', api.baseUrl + acme.path, '--header', `Authorization: Bearer ${acme.keys.admin}`, '--request-timeout', '60']
    const output = await python([
      '-m',
      'schemathesis.cli',
      '--config-file',
      fuzzerConfig,
      'run',
      description,
      ...target,
      ...scope,
      ...checks,
      ...generation,
    ])
    expect(output).toMatch(/Tested: +\d{2}/)
    expect(output).toContain('No issues found')
    expect(linesOfLevel(api.log.join(''), ['error', 'fatal'])).toEqual([])
  },
  timeoutMs + 10_000,
)
