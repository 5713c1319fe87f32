// Makes everything that tests run against, and tells them where it is in TEST_* variables. One that is set already is kept.
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'
import { readConfig } from '../../src/config.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { startPostgres } from '../../src/embedded/postgres.ts'
import { findTemporal } from '../../src/embedded/temporal-program.ts'
import { messageOf, UserError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
import { databaseConfig, templateName } from './database.ts'
import cleanUp, { afterwards } from './global-teardown.ts'
import { findAzurite, findSshd, findTimeSkippingServer, findVersitygw } from './tools.ts'

const say = (line: string) => void process.stderr.write(`${line}\n`)

export default async () => {
  try {
    await prepare()
  } catch (thrown) {
    // jest does not, where the set-up fails
    await cleanUp()
    throw thrown
  }
}

const prepare = async (): Promise<void> => {
  const config = readConfig()
  const tools = { config, say }
  const workDir = await mkdtemp(join(tmpdir(), 'relay-test-'))
  afterwards({ workDir })
  // the database comes first, as no test file can do without it; of the rest, what is missing fails the tests that need it
  await provide('TEST_DATABASE_URL', async () => {
    const postgres = await startPostgres({ dataDir: join(workDir, 'data'), config, log: createLog('warn'), say: () => {}, fast: true })
    afterwards({ stop: () => postgres.stop() })
    return postgres.url
  })
  await Promise.all([
    makeTemplate(process.env.TEST_DATABASE_URL!),
    provide('TEST_WORKFLOW_BUNDLE', () => bundleInto(workDir)),
    orSay(provide('TEST_TEMPORAL_BIN', () => findTemporal(tools))),
    orSay(provide('TEST_TIME_SKIPPING_BIN', () => findTimeSkippingServer(tools))),
    orSay(provide('TEST_VERSITYGW_BIN', () => findVersitygw(tools))),
    orSay(provide('TEST_AZURITE_BIN', () => findAzurite(tools))),
    orSay(provide('TEST_SSHD_BIN', () => findSshd(tools))),
  ])
}

const provide = async (variable: string, make: () => Promise<string>): Promise<void> => {
  process.env[variable] ||= await make()
}

const orSay = async (providing: Promise<void>): Promise<void> => {
  try {
    await providing
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown
    say(`Tests will fail: ${messageOf(thrown)}`)
  }
}

// one for the whole run: every test database is copied from it
const makeTemplate = async (serverUrl: string): Promise<void> => {
  const admin = openDatabase(databaseConfig(serverUrl), 'test setup')
  await admin.raw('drop database if exists ?? with (force)', [templateName])
  await admin.raw('create database ??', [templateName])
  await admin.destroy()

  const templateUrl = new URL(serverUrl)
  templateUrl.pathname = `/${templateName}`
  const template = openDatabase(databaseConfig(templateUrl.href), 'test template')
  await migrate(template)
  await template.destroy()
}

// takes seconds: once for all workers of all test files
const bundleInto = async (workDir: string): Promise<string> => {
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../workflows/index.ts', import.meta.url)),
    logger: new DefaultLogger('WARN'),
  })
  const path = join(workDir, 'workflow-bundle.js')
  await writeFile(path, code)
  return path
}
