import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { version } from '../../src/base/version.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { createClient } from '../support/client.ts'
import { startHttpTarget, type Arrival } from '../support/http-target.ts'
import { startNpmRegistry } from '../support/npm-registry.ts'
import { startOtlpCollector } from '../support/otlp-collector.ts'
import { until } from '../support/until.ts'
import { blocksOf } from './commands.ts'
import { root, script, startServerWalk, textOf } from './server-walk.ts'
import { comparable, stepsOf } from './walk.ts'

const { folder, dataDir, baseUrl, temporalAddress, ran, workDirOf, walk, findLeft } = await startServerWalk()
const registry = await startNpmRegistry(join(folder, 'registry'), [version])
afterAll(() => registry.stop())

const tutorialDir = workDirOf('docs/tutorial.md')
const targetsDir = join(tutorialDir, '.targets')
const temporal = { TEMPORAL_ADDRESS: temporalAddress }

test('script/server is reached at 127.0.0.1 only', async () => {
  expect((await fetch(`${baseUrl}/healthz`)).status).toBe(200)
  // Another loopback address, at which a server that listens on all addresses would answer.
  await expect(fetch(`${baseUrl.replace('127.0.0.1', '127.0.0.2')}/healthz`)).rejects.toThrow('fetch failed')
})

test.each(['docs/api.md', 'README.md'])(
  'every command of %s prints what the page promises',
  async (page) => {
    const steps = await walk(page)
    expect(steps.filter(({ answer }) => answer !== undefined)).not.toEqual([])
    for (const { commands, answer, output } of steps) {
      if (answer !== undefined) expect({ commands, answer: comparable(output) }).toEqual({ commands, answer: comparable(answer) })
    }
  },
  300_000,
)

test('every command of docs/tutorial.md prints what the page promises, with the targets that it starts', async () => {
  const page = await textOf('docs/tutorial.md')
  const shown = blocksOf(page).find(({ content }) => content.startsWith('Folder '))!.content
  const [s3Port, smtpPort] = [String(await findFreePort()), String(await findFreePort())]
  const replace = { '127.0.0.1:9001': `127.0.0.1:${s3Port}`, '2525': smtpPort, '/home/you/document-relay': tutorialDir }
  await mkdir(tutorialDir, { recursive: true })
  const targets = spawn(script('targets'), ['--directory', targetsDir, '--s3-port', s3Port, '--smtp-port', smtpPort], {
    cwd: tutorialDir,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed = text(targets.stdout)
  try {
    await until('the targets have written the invoice', () => existsSync(join(targetsDir, 'invoice.pdf')))
    const steps = await walk('docs/tutorial.md', { replace })
    expect(steps.filter(({ answer }) => answer !== undefined).length).toBeGreaterThan(4)
    for (const { commands, answer, output } of steps)
      if (answer !== undefined) expect({ commands, answer: comparable(output) }).toEqual({ commands, answer: comparable(answer) })
  } finally {
    targets.kill()
    expect(comparable(await printed)).toBe(comparable(shown.replace('127.0.0.1:2525', '<address>')))
  }
}, 300_000)

/** Commands before those of a page that begins with a workspace and a key. A request that is refused ends the shell. */
const inWorkspace = (workspace: string) => `
relay() { script/relay "$@"; }
curl() { command curl --silent --show-error --fail-with-body "$@"; }
id() { node -p 'JSON.parse(require("node:fs").readFileSync(0, "utf8")).data.id'; }
relay workspace create ${workspace} >/dev/null
key=$(relay key create ${workspace} --level admin)
api=http://127.0.0.1:8080/api/${workspace}
`

test('the commands of docs/source-system.md set up a repository that requires signatures', async () => {
  const certificates = '"$api/repositories/$repository/certificates'
  const [, ...activated] = await walk('docs/source-system.md', {
    before: `${inWorkspace('acme/source')}
openssl req -x509 -newkey rsa:2048 -nodes -keyout signing.key -days 30 -subj '/CN=TST' -out exported.pem 2>/dev/null
first() { node -p 'JSON.parse(require("node:fs").readFileSync(0, "utf8")).data[0].id'; }`,
    replace: {
      'https://relay.example/api/acme/invoices': 'http://127.0.0.1:8080/api/acme/source',
      '/$certificate"': `/$(curl --header "Authorization: Bearer $key" ${certificates}" | first)"`,
    },
  })
  const [created, , added, listed, fingerprint, active, required] = activated.map(({ output }) => output)
  expect(created).toBe('')
  const { data } = JSON.parse(listed!) as { data: { attributes: { fingerprint_sha256: string } }[] }
  expect(JSON.parse(added!).data.attributes.status).toBe('inactive')
  expect(fingerprint!.trim().split('=')[1]!.replaceAll(':', '').toLowerCase()).toBe(data[0]!.attributes.fingerprint_sha256)
  expect(JSON.parse(active!).data.attributes.status).toBe('active')
  expect(JSON.parse(required!).data.attributes.signature_verification).toBe(true)
})

test('the commands of docs/bridge.md call a function of the source system', async () => {
  const [, call] = await walk('docs/bridge.md', {
    before: inWorkspace('acme/bridge'),
    replace: {
      'acme/invoices': 'acme/bridge',
      '"password": "..."': '"password": "canary-rfc"',
    },
  })
  expect(comparable(call!.output)).toEqual(comparable(call!.answer!))
})

test('the commands of docs/notifications.md create a notification', async () => {
  const [created] = await walk('docs/notifications.md', {
    before: `${inWorkspace('acme/notifications')}
destination=$(curl --header "Authorization: Bearer $key" "$api/destinations" --json '{
  "name": "Operators", "connector_type": "webhook", "config": {"url": "http://127.0.0.1:9000/"}, "credentials": {}}' | id)`,
    replace: { '"01K9R4B6ZD8M2V7X0QF3N5T1CG"': `"'$destination'"` },
  })
  expect(JSON.parse(created!.output).data.attributes).toMatchObject({
    name: 'On call',
    quiet_seconds: 900,
    silence_hours: 72,
    is_active: true,
  })
})

test('the commands of docs/audit-log.md and docs/console.md change the tier of a workspace and create a key', async () => {
  const replace = { 'acme/invoices': 'acme/tier' }
  const [tier] = await walk('docs/audit-log.md', { before: inWorkspace('acme/tier'), replace })
  expect(tier!.output).toBe('Workspace acme/tier is in the compliance tier.\n')
  const [key] = await walk('docs/console.md', { before: 'relay() { script/relay "$@"; }', replace })
  expect(comparable(key!.output)).toBe('relay_<key>')
})

test('the commands of docs/configuration-as-code.md apply the file of the page, print its schema, export it, and find no drift', async () => {
  const example = /^```yaml\n(.*?)^```$/ms.exec(await textOf('docs/configuration-as-code.md'))![1]!
  const [applied, , generated, exported, compared] = await walk('docs/configuration-as-code.md', {
    before: 'relay() { script/relay "$@"; }\nmkdir secrets\necho secret >secrets/archive-password',
    files: { 'relay.yaml': example },
    // The export of the page would replace the file whose secrets these variables have.
    replace: { '> relay.yaml': '| tee exported.yaml' },
    variables: {
      ERP_USER: 'RELAY',
      ERP_PASSWORD: 'secret',
      ARCHIVE_USER: 'archive',
      DMS_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}`,
    },
  })
  expect(applied!.output).toMatch(/\nNothing was changed\. A run would report: 10 created, 1 updated[^]*\n12 created, 1 updated/)
  expect(comparable(generated!.output)).toBe(comparable(generated!.answer!))
  const schema = JSON.parse(await readFile(join(workDirOf('docs/configuration-as-code.md'), 'relay.schema.json'), 'utf8')) as object
  expect(schema).toMatchObject({ $id: 'urn:document-relay:relay.schema.json' })
  expect(exported!.output).toContain('slug: acme/prod')
  // Status 2 for a difference would have ended the shell.
  expect(compared!.output).toContain('0 created, 0 updated, 0 deleted')
})

test('the commands of docs/security.md fetch the advisories for the packages of the checkout, and compare them', async () => {
  const [compared] = await walk('docs/security.md', {
    under: ['Dependencies'],
    before: `cd ${root}`,
    variables: registry.variables,
    replace: { 'advisories.json': join(folder, 'advisories.json') },
  })
  const { version: koa } = JSON.parse(await readFile(join(root, 'node_modules/koa/package.json'), 'utf8')) as { version: string }
  expect(registry.advisoryRequests.map(({ method, body }) => [method, JSON.parse(body)])).toEqual([
    ['POST', expect.objectContaining({ koa: [koa] })],
  ])
  expect(await readFile(join(folder, 'advisories.json'), 'utf8')).toBe('{}')
  expect(compared!.output).toContain('no known vulnerability')
})

/** Commands before those of a page that run `temporal`, and processes in the background, which end together with the shell. */
const withProcesses = `
temporal() { "$TEST_TEMPORAL_BIN" "$@"; }
relay() { script/relay "$@"; }
set -m
trap 'for job in $(jobs -p); do kill -- "-$job"; done' EXIT
`

test('the commands of docs/temporal.md query a failed delivery, and retry it and all that wait at one destination', async () => {
  const relay = async (...words: string[]) => {
    const environment = { ...process.env, RELAY_DATA_DIR: dataDir }
    return (await promisify(execFile)(script('relay'), words, { env: environment })).stdout.trim()
  }
  const target = await startHttpTarget()
  const docIdOf = ({ headers }: Arrival) => String(headers['x-relay-doc-id'])
  target.answerWith((arrival, response) => {
    const isFirst = target.arrivals.filter((each) => docIdOf(each) === docIdOf(arrival)).length === 1
    response.writeHead(isFirst ? 401 : 200).end()
  })
  try {
    await relay('workspace', 'create', 'acme/operations')
    const key = await relay('key', 'create', 'acme/operations', '--level', 'admin')
    const client = createClient({ baseUrl, name: 'acme/operations', key })
    const createDestination = async (repoId: string, name: string) => {
      const { destinationId } = await client.wire([client.webhook(target.origin, name)], { repoId })
      return destinationId
    }
    const createDocument = async (repoId: string, docId: string) => {
      expect((await client.sendCreate(repoId, docId)).status).toBe(201)
      await until(`document ${docId} has arrived`, () => target.arrivals.some((arrival) => docIdOf(arrival) === docId))
    }
    const archive = await createDestination('Z1', 'Archive of last year')
    await createDocument('Z1', '4711')
    await createDocument('Z1', '4712')
    await createDestination('Z2', 'Archive')
    await createDocument('Z2', '4713')
    await client.change('PATCH', `/destinations/${archive}`, { name: 'Archive' })
    const failed = "WorkflowType = 'delivery' and RelayStatus = 'failed' and RelayWorkspace = 'acme/operations'"
    const [queried] = await walk('docs/temporal.md', {
      under: ['In the Temporal UI', 'Manual retry'],
      before: `${withProcesses}
until [ "$(temporal workflow count --query "${failed}")" = 'Total: 3' ]; do sleep 0.2; done`,
      replace: { 'acme/invoices': 'acme/operations' },
      variables: temporal,
    })
    expect(queried!.output).toMatch(/"status": ?"failed"/)
    // The target accepts the second request. The first command retries 4711, the second one what waits at the same destination.
    await until('both are delivered', () => target.arrivals.length === 5)
    expect(target.arrivals.map(docIdOf).toSorted()).toEqual(['4711', '4711', '4712', '4712', '4713'])
  } finally {
    await target.stop()
  }
})

test('the commands of docs/install.md install the package, and its services send traces to the collector of docs/observability.md', async () => {
  const [collector, apiPort, probesPort, workerPort] = await Promise.all([
    startOtlpCollector(),
    findFreePort(),
    findFreePort(),
    findFreePort(),
  ])
  const releases = join(folder, 'releases')
  const units = await Promise.all(['api', 'worker'].map((name) => textOf(`deploy/systemd/relay-${name}.service`)))
  const services = units.map((unit) => `${/^ExecStart=(.*)$/m.exec(unit)![1]} &`)
  const [exports] = stepsOf(await textOf('docs/observability.md'))
  ran.add(exports!.commands)
  try {
    const ports = { RELAY_PORT: String(apiPort), RELAY_PROBES_PORT: String(probesPort), RELAY_WORKER_PORT: String(workerPort) }
    const steps = await walk('docs/install.md', {
      under: ['2. Install the package', '5. Migrate and start', 'The first workspace'],
      before: `${withProcesses}\n${exports!.commands}`,
      replace: {
        '/opt/relay': releases,
        'acme/invoices': 'acme/installed',
        'http://collector.example:4318': collector.endpoint,
        'api-key=...': 'api-key=secret',
      },
      variables: { ...registry.variables, ...ports, RELAY_HOST: '127.0.0.1' },
      after: `
${services.join('\n')}
for port in ${probesPort} ${workerPort}; do
  curl --silent --show-error --fail --retry 100 --retry-delay 1 --retry-all-errors "http://127.0.0.1:$port/readyz"
done
curl --silent --show-error "http://127.0.0.1:${apiPort}/api/acme/none/documents"`,
    })
    expect(services).toHaveLength(2)
    expect(steps[0]!.output).toContain('added 1 package')
    expect(steps.at(-1)!.output).toMatch(/^relay_\w/m)
    expect(collector.spans.map(({ kind }) => kind)).toContain('server')
    expect(new Set(collector.requests.map(({ headers }) => headers['api-key']))).toEqual(new Set(['secret']))
  } finally {
    await collector.stop()
  }
}, 300_000)

test('the commands of docs/install.md leave of the packages what runs on this platform', async () => {
  const steps = await walk('docs/install.md', {
    under: ['Installed size'],
    before: `
bridge=node_modules/@temporalio/core-bridge
cd "$(mktemp -d)"
mkdir -p $bridge/{sdk-core,src,ts,bridge-macros,lib,releases/{this,other}} node_modules/pg
echo 'exports.getPrebuiltTargetName = () => "this"' >$bridge/common.js
touch $bridge/{sdk-core,src,ts}/source $bridge/lib/index.{js,js.map,d.ts} $bridge/releases/{this,other}/index.node node_modules/pg/{LICENSE,esm.d.mts}`,
    after: `test "$(find node_modules -type f | sort | tr '\\n' ' ')" = "$(ls -d $bridge/{common.js,lib/index.js,releases/this/index.node} node_modules/pg/LICENSE | tr '\\n' ' ')"`,
  })
  expect(steps).toHaveLength(1)
})

// The following tests leave a server whose workflows wait for a worker with a build id, and which still seals with the former key.
test('the commands of docs/temporal.md give some workflows, then all, to the version of a worker with a build id', async () => {
  const [, described] = await walk('docs/temporal.md', {
    under: ['Worker versions'],
    before: withProcesses,
    variables: { ...temporal, RELAY_WORKER_PORT: '0' },
  })
  expect(described!.output).toMatch(/CurrentVersionBuildID +0\.2\.0/)
  expect(described!.output).toMatch(/RampingVersionBuildID +0\.3\.0/)
})

test('the commands of docs/security.md seal the credentials of script/server with another key', async () => {
  const [rotated] = await walk('docs/security.md', {
    under: ['Rotate the sealing keys'],
    replace: { '.relay/secret-key': join(dataDir, 'secret-key') },
  })
  expect(rotated!.output).toMatch(/^Credentials re-sealed with key k1: [1-9]\d*\n$/)
})

test('every command of the pages was run', async () => {
  expect(await findLeft('test/docs/pages.release.test.ts')).toEqual([])
})
