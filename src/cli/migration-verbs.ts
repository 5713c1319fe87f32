import { InvalidArgumentError, Option, type Command } from 'commander'
import type { Separator } from '../http/attachments.ts'
import type { DocumentMigration } from '../migration/migrations.ts'
import type { CommandContext } from './context.ts'
import { cellOf, jsonOption, printProgress, printResult, tableOf, type OutputOptions } from './output.ts'

const verbs = () => import('./document-migrations.ts')

const perMinute = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number above 0.')
  return value
}

interface VerifyOptions {
  publicKey?: string
  csv?: string
  spreadsheet?: Separator
}

/** Adds the commands that copy the documents of an old content server, and prove that they are here. */
export const addMigrationVerbs = (program: Command, { inDatabase }: CommandContext) => {
  const migrate = program
    .command('migrate-documents')
    .description('copy the documents of an old content server by lists of the source system')

  const show = async (options: OutputOptions, migration: DocumentMigration) => {
    const { describeMigration, presentMigration } = await verbs()
    printResult(options, presentMigration(migration), describeMigration(migration))
  }
  const follow = (id: string) =>
    inDatabase(async (db) => {
      const { followMigration, progressLine } = await verbs()
      return followMigration(db, id, (migration) => printProgress(progressLine(migration)))
    })

  migrate
    .command('start <user/workspace> <repo_id> <list...>')
    .description(
      'judge every row of exported link tables (TOA01 to TOA03, TOAHR, BDS_BAR_EX): copy its document from the upstream of the repository',
    )
    .option('--check', 'store nothing: only read which documents the old content server has and delivers whole')
    .option('--per-minute <documents>', 'ask the old content server about no more documents per minute', perMinute)
    .option('--follow', 'show the progress until the migration ends')
    .addOption(jsonOption)
    .action(
      async (
        workspace: string,
        repoId: string,
        paths: string[],
        {
          check,
          perMinute: documentsPerMinute,
          follow: isFollowed,
          ...options
        }: OutputOptions & {
          check?: boolean
          perMinute?: number
          follow?: boolean
        },
      ) => {
        const { startMigration } = await verbs()
        const mode = check ? 'check' : 'copy'
        const request = { workspace, repoId, paths, mode, documentsPerMinute: documentsPerMinute ?? null } as const
        const migration = await inDatabase((db) => startMigration(db, request))
        await show(options, isFollowed ? await follow(migration.id) : migration)
      },
    )

  migrate
    .command('list <user/workspace>')
    .description('list the migrations of a workspace, newest first')
    .addOption(jsonOption)
    .action(async (workspace: string, options: OutputOptions) => {
      const { listMigrations, presentMigration } = await verbs()
      const migrations = await inDatabase((db) => listMigrations(db, workspace))
      printResult(
        options,
        migrations.map(presentMigration),
        tableOf(
          ['ID', 'REPOSITORY', 'STATUS', 'ROWS', 'COPIED', 'EQUAL', 'MISSING', 'DIFFERENT', 'DAMAGED', 'FAILED', 'STARTED (UTC)'],
          migrations.map(({ id, repoId, status, rows, copied, equal, missing, different, damaged, failed, createdAt }) => [
            id,
            repoId,
            status,
            ...[rows, copied, equal, missing, different, damaged, failed].map(String),
            cellOf(createdAt),
          ]),
        ),
      )
    })

  migrate
    .command('status <id>')
    .description('show the progress of a migration')
    .option('--follow', 'until it ends')
    .addOption(jsonOption)
    .action(async (id: string, { follow: isFollowed, ...options }: OutputOptions & { follow?: boolean }) => {
      const { showMigration } = await verbs()
      await show(options, isFollowed ? await follow(id) : await inDatabase((db) => showMigration(db, id)))
    })

  const changes = {
    pause: 'stop a migration before its next documents, so that it can be resumed',
    resume: 'continue a paused migration',
    cancel: 'end a migration; what it has copied stays',
  } as const
  for (const verb of ['pause', 'resume', 'cancel'] as const) {
    migrate
      .command(`${verb} <id>`)
      .description(changes[verb])
      .addOption(jsonOption)
      .action(async (id: string, options: OutputOptions) => {
        const { changeMigration } = await verbs()
        await show(options, await inDatabase((db) => changeMigration(db, id, verb)))
      })
  }

  migrate
    .command('report <id>')
    .description('write the signed report of a migration: a line of JSON for every row of the lists')
    .option('--output <file>', 'the file to write; standard output without it')
    .action(async (id: string, { output }: { output?: string }) => {
      const [{ saveReport }, { createKeyRing }] = await Promise.all([verbs(), import('../security/seal.ts')])
      await inDatabase((db, { RELAY_SECRET_KEYS }) => saveReport(db, createKeyRing(RELAY_SECRET_KEYS), id, output))
      if (output !== undefined)
        printProgress(`The report is in ${output}. Anybody can check it with: relay migrate-documents verify ${output}`)
    })

  migrate
    .command('public-key')
    .description('print the key that verifies the reports of this installation, in PEM')
    .action(async () => {
      const [{ fingerprintOf, openSigningKey }, { createKeyRing }] = await Promise.all([
        import('../migration/signing-key.ts'),
        import('../security/seal.ts'),
      ])
      const { publicKey } = await inDatabase((db, { RELAY_SECRET_KEYS }) => openSigningKey(db, createKeyRing(RELAY_SECRET_KEYS)))
      process.stdout.write(publicKey)
      printProgress(fingerprintOf(publicKey))
    })

  migrate
    .command('deletions <user/workspace> <repo_id>')
    .description('list what the source system has deleted here, which the upstream may still have')
    .option('--delete', 'delete it at the upstream, too: after the source system was switched back and everything was delivered there')
    .addOption(jsonOption)
    .action(async (workspace: string, repoId: string, { delete: isRepeated = false, ...options }: OutputOptions & { delete?: boolean }) => {
      const { deletionLine, describeDeletions, presentDeletions, showDeletions } = await import('./deletions.ts')
      const deletions = await inDatabase((db, config) =>
        showDeletions(db, config, { workspace, repoId, isRepeated }, (repeated) => printProgress(deletionLine(repeated))),
      )
      printResult(options, presentDeletions(deletions), describeDeletions(deletions))
      if (deletions.some(({ result }) => result === 'failed')) process.exitCode = 1
    })

  migrate
    .command('verify <report>')
    .description('check a report of a migration without a network: it is complete, unchanged, and signed; list what is missing')
    .option('--public-key <file>', 'the key of the installation, from a trusted source; without it, the key in the report is used')
    .option('--csv <file>', 'also write the documents that are missing, different, damaged or failed, by business object')
    .addOption(
      new Option('--spreadsheet <separator>', 'write the CSV for a spreadsheet such as Excel: with a byte-order mark').choices([
        'comma',
        'semicolon',
      ]),
    )
    .addOption(jsonOption)
    .action(async (report: string, { publicKey, csv, spreadsheet, ...options }: OutputOptions & VerifyOptions) => {
      const { describeReport, verifyFile, writeOpenRows } = await verbs()
      const verified = await verifyFile(report, publicKey)
      if (csv !== undefined) await writeOpenRows(csv, verified, spreadsheet)
      printResult(options, verified, describeReport(verified))
      if (verified.open.length > 0) process.exitCode = 1
    })
}
