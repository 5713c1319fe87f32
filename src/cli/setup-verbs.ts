import { Option, type Command } from 'commander'
import { UserError } from '../base/errors.ts'
import type { CommandContext } from './context.ts'
import type { Finding } from './doctor/doctor.ts'
import { dryRunNote, jsonOption, parseDay, print, printJson, printProgress, printResult, type OutputOptions } from './output.ts'

interface BringBackFlags extends OutputOptions {
  repo?: string
  dryRun?: boolean
}

interface DescribeFlags {
  lang: 'en' | 'de'
  restoreTest?: string
  output?: string
  sign?: boolean
}

/** Adds the verbs that set up the relay, check it and describe it. */
export const addSetupVerbs = (program: Command, context: CommandContext) => {
  program
    .command('migrate')
    .description('update the database schema and register the search attributes in Temporal')
    .option('--without-search-attributes', 'succeed even if the search attributes cannot be registered')
    .addOption(jsonOption)
    .action(async (options: OutputOptions & { withoutSearchAttributes?: boolean }) => {
      const { migrateAll } = await import('../app/migrate.ts')
      const onWait = (problem: string, maxMs: number) => printProgress(`${problem} Trying again for up to ${Math.ceil(maxMs / 1_000)} s.`)
      const { applied, searchAttributesError, temporalVersion } = await migrateAll(await context.config(), onWait, printProgress)
      const isRegistered = searchAttributesError === undefined && temporalVersion === undefined
      printResult(options, { applied, search_attributes: isRegistered, ...(temporalVersion && { temporal_version: temporalVersion }) }, [
        applied.length > 0 ? `Applied: ${applied.join(', ')}` : 'The database schema is up to date.',
        temporalVersion !== undefined
          ? `The schemas of Temporal ${temporalVersion} are up to date. relay server registers the search attributes when it starts.`
          : isRegistered
            ? 'The search attributes are registered.'
            : `The search attributes are not registered: ${searchAttributesError}`,
      ])
      if (searchAttributesError === undefined || options.withoutSearchAttributes) return
      process.exitCode = 1
      printProgress(
        'Run relay migrate again when Temporal is available. The relay also runs without the search attributes, but the list filters of the ' +
          'Temporal UI then find nothing: use --without-search-attributes if that is intended, or if somebody else registers them.',
      )
    })
  program
    .command('doctor')
    .description('check everything that the relay needs, and the hardening checklist, and report what is missing')
    .option('--strict', 'exit with 1 for warnings, too')
    .option('--quiet', 'print only what is missing: nothing, if nothing is')
    .option('-f, --file <path>', 'also compare the workspaces with the file of relay apply')
    .addOption(jsonOption)
    .action(async (options: OutputOptions & { strict?: boolean; quiet?: boolean; file?: string }) => {
      const { variables } = context
      const { diagnose, exitStatusOf } = await import('./doctor/doctor.ts')
      const all = await diagnose(await context.config(), {
        source: variables['DATABASE_URL'] ? 'environment variables' : 'the running script/server',
        isEmbedded: !variables['DATABASE_URL'],
        workspacesFile: options.file === undefined ? undefined : { path: options.file, variables },
      })
      const findings = options.quiet ? all.filter(({ status }) => status !== 'ok') : all
      printResult(options, findings, findings.flatMap(describeFinding))
      process.exitCode = exitStatusOf(all, options.strict === true)
    })
  program
    .command('describe <user/workspace>')
    .description('print the process description of a workspace in Markdown, for auditors: each sentence follows from a setting')
    .addOption(new Option('--lang <language>', 'language of the description').choices(['en', 'de']).default('en'))
    .option('--restore-test <date>', 'the day of the last restore test, which the relay does not know', parseDay)
    .option('--output <path>', 'write it to a file instead')
    .option('--sign', 'with --output: also write its signature and the certificate, as for a manifest')
    .action(async (workspace: string, { lang, restoreTest, output, sign = false }: DescribeFlags) => {
      if (sign && output === undefined) throw new UserError('--sign needs --output.')
      const { describeWorkspace, writeDescription } = await import('./describe/describe.ts')
      const files = await context.inDatabase(async (db, config) => {
        const description = await describeWorkspace(db, config, workspace, { lang, restoreTest })
        if (output !== undefined) return writeDescription(db, config, output, description, sign)
        print(description.trimEnd())
        return []
      })
      for (const file of files) print(file)
    })
  program
    .command('promote')
    .description('with TEMPORAL_WORKER_BUILD_ID: give all workflows to the workers of this build, as soon as one of them runs')
    .addOption(jsonOption)
    .action(async (options: OutputOptions) => {
      const { makeCurrent } = await import('../temporal/worker-version.ts')
      const { deploymentName, buildId, previousBuildId } = await makeCurrent(await context.config())
      const before = previousBuildId === undefined ? '' : ` It was ${previousBuildId} before.`
      printResult(options, { deployment: deploymentName, build_id: buildId, previous_build_id: previousBuildId ?? null }, [
        `The current build of ${deploymentName} is ${buildId}.${before}`,
      ])
    })
  program
    .command('reconcile')
    .description('start deliveries and bulk retries again that Temporal has lost, without waiting for the maintenance job')
    .option('--dry-run', 'only report what would be started')
    .addOption(jsonOption)
    .action(async ({ dryRun = false, ...options }: OutputOptions & { dryRun?: boolean }) => {
      const [{ reconcileNow }, { describeReconciled }] = await Promise.all([import('./reconcile.ts'), import('../delivery/reconcile.ts')])
      const settings = await context.config()
      const result = await reconcileNow(settings, await context.openLog(settings), { dryRun })
      const { bulkRetriesStarted, bulkRetriesCancelled, ...deliveries } = result
      printResult(
        options,
        { dry_run: dryRun, ...deliveries, bulk_retries_started: bulkRetriesStarted, bulk_retries_cancelled: bulkRetriesCancelled },
        [`${dryRunNote(dryRun)}${describeReconciled(result)}.`],
      )
    })
  const contents = program.command('contents').description('check the contents of documents, and bring them back from a home')
  contents
    .command('bring-back <user/workspace> <destination>')
    .description(
      'bring back the contents that only a destination has, which was the home of repositories; exits with 1 if some are lost there',
    )
    .option('--repo <repo_id>', 'only those of a repository')
    .option('--dry-run', 'only count them')
    .addOption(jsonOption)
    .action(async (workspace: string, destination: string, { repo, dryRun = false, ...options }: BringBackFlags) => {
      const [{ bringContentsBack, describeBroughtBack }, { createStopSignal }] = await Promise.all([
        import('./bring-back.ts'),
        import('./stop-signal.ts'),
      ])
      const signal = createStopSignal()
      const given = { workspace, destination, repoId: repo, dryRun, signal, onProgress: printProgress }
      const result = await context.inDatabase((db, config) => bringContentsBack(db, config, given))
      printResult(options, { dry_run: dryRun, ...result }, describeBroughtBack(result, { dryRun }))
      if (result.failed.length > 0) process.exitCode = 1
    })
  contents
    .command('verify')
    .description('check that the content of every document is stored, after a restore for example; exits with 1 if not')
    .option('--read', 'also read every byte, and compare its SHA-256')
    .addOption(jsonOption)
    .action(async ({ read = false, ...options }: OutputOptions & { read?: boolean }) => {
      const { describeVerified, verifyAllContents } = await import('./verify-contents.ts')
      const result = await verifyAllContents(await context.config(), { isRead: read })
      printResult(options, result, describeVerified(result))
      if (result.damaged > 0) process.exitCode = 1
    })
  program
    .command('openapi')
    .description('print the OpenAPI 3.1 description of the management API as JSON')
    .addOption(jsonOption)
    .action(async () => {
      const { describeApi } = await import('../api/open-api/document.ts')
      printJson(describeApi())
    })
}

const describeFinding = ({ name, status, message, warnings, remedy }: Finding): string[] => {
  const lines =
    status === 'warning'
      ? warnings.map((warning) => `warn  ${name}: ${warning}`)
      : [`${{ ok: 'ok  ', failed: 'FAIL', not_checked: '-   ' }[status]}  ${name}: ${message}`]
  // What could not be checked follows from a line above it, which says what to do.
  return remedy === null || status === 'not_checked' ? lines : [...lines, `      Do: ${remedy}`]
}
