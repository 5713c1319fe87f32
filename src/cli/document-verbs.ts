import { Option, type Command } from 'commander'
import { UserError } from '../base/errors.ts'
import type { CommandContext } from './context.ts'
import type { DeliverOptions } from './deliver.ts'
import type { ShownDocument } from './documents.ts'
import { jsonOption, printProgress, printResult, type OutputOptions } from './output.ts'

const workspaceOption = new Option('--workspace <user/workspace>', 'only documents of this workspace')

interface DocumentOptions extends OutputOptions {
  workspace?: string
}

interface RetryFlags {
  destination?: string
  error?: string
  dryRun?: boolean
}

type DeliverFlags = Omit<DeliverOptions, 'workspace' | 'destination' | 'documents' | 'onProgress'>

/** Adds the commands that find, show, retry and deliver documents. */
export const addDocumentVerbs = (program: Command, context: CommandContext) => {
  const print = async (options: OutputOptions, shown: ShownDocument) => {
    const { describeDocument, withConsoleUrl } = await import('./documents.ts')
    const document = withConsoleUrl(await context.baseUrl(), shown)
    printResult(options, document, describeDocument(document))
  }
  const change = async (verb: 'retry' | 'attempt' | 'enrich', reference: string, { workspace, ...options }: DocumentOptions) => {
    const { changeDocument } = await import('./documents.ts')
    const settings = await context.config()
    await print(options, await changeDocument(settings, await context.openLog(settings), verb, reference, workspace))
  }
  program
    .command('find <text>')
    .description(
      'list the documents whose docId or business key begins with this text, or whose number ends with it, newest first; exit status 1 if there is none',
    )
    .addOption(workspaceOption)
    .addOption(jsonOption)
    .action(async (text: string, { workspace, ...options }: DocumentOptions) => {
      const { askTemporal, describeFound, findDocuments, foundMax } = await import('./documents.ts')
      const found = await context.inDatabase((db, config) => findDocuments(db, text, workspace, askTemporal(config)))
      printResult(options, found, describeFound(found))
      if (found.length === 0) process.exitCode = 1
      if (found.length >= foundMax) printProgress(`Only the newest ${foundMax} documents of a workspace are listed.`)
    })
  program
    .command('show <document>')
    .description('show a document, by its id or docId, with its deliveries')
    .addOption(workspaceOption)
    .addOption(jsonOption)
    .action(async (reference: string, { workspace, ...options }: DocumentOptions) => {
      const { askTemporal, showDocument } = await import('./documents.ts')
      await print(options, await context.inDatabase((db, config) => showDocument(db, reference, workspace, askTemporal(config))))
    })
  program
    .command('failures [user/workspace]')
    .description(
      'list what has failed and what is retried, by destination and error, of a workspace or of all: why, what to do, and the command that retries it',
    )
    .addOption(jsonOption)
    .action(async (workspace: string | undefined, options: OutputOptions) => {
      const { describeFailures, listFailures } = await import('./failures.ts')
      const groups = await context.inDatabase((db) => listFailures(db, workspace))
      printResult(options, groups, describeFailures(groups))
    })
  program
    .command('retry [document]')
    .description(
      'retry the failed and cancelled deliveries of a document, given by its id or docId, or the failed deliveries to a destination',
    )
    .option('--destination <name>', 'all failed deliveries to this destination, given by its name or id, instead of a document')
    .option('--error <code>', 'with --destination: only those that failed with this error code; none: without one')
    .option('--dry-run', 'with --destination: only count the documents')
    .addOption(workspaceOption)
    .addOption(jsonOption)
    .action(async (reference: string | undefined, { destination, error, dryRun, ...options }: DocumentOptions & RetryFlags) => {
      if ((reference === undefined) === (destination === undefined))
        throw new UserError('Name a document, or a destination with --destination.')
      if (reference !== undefined) {
        if (error !== undefined || dryRun) throw new UserError('--error and --dry-run need --destination.')
        return change('retry', reference, options)
      }
      const { describeRetried, retryDestinationOf } = await import('./failures.ts')
      const settings = await context.config()
      const wanted = { workspace: options.workspace, destination: destination!, error, dryRun, onProgress: printProgress }
      const result = await retryDestinationOf(settings, await context.openLog(settings), wanted)
      return printResult(options, result, describeRetried(result))
    })
  program
    .command('attempt <document>')
    .description('make the next attempt of the waiting deliveries of a document now')
    .addOption(workspaceOption)
    .addOption(jsonOption)
    .action((reference: string, options: DocumentOptions) => change('attempt', reference, options))
  program
    .command('deliver <user/workspace> <destination> [document...]')
    .description(
      'deliver documents, all or those with these ids, to a destination that was connected after they were received, or again to one that has lost them',
    )
    .option('--again', 'the documents that the destination has')
    .option('--repo <repo_id>', 'only documents of this repository')
    .option('--from <date>', 'only documents that were received at this date or time or later, in UTC')
    .option('--to <date>', 'only documents that were received at this date or time or earlier')
    .option('--delivered-from <date>', 'with --again: only documents that were delivered at this date or time or later')
    .option('--delivered-to <date>', 'with --again: only documents that were delivered at this date or time or earlier')
    .option('--dry-run', 'only count the documents')
    .addOption(jsonOption)
    .action(async (workspace: string, destination: string, documents: string[], { json, ...options }: OutputOptions & DeliverFlags) => {
      const { deliver, describeDelivered } = await import('./deliver.ts')
      const settings = await context.config()
      const wanted = { workspace, destination, documents, ...options, onProgress: printProgress }
      const result = await deliver(settings, await context.openLog(settings), wanted)
      printResult({ ...(json && { json }) }, result, describeDelivered(result))
    })
  program
    .command('enrich <document>')
    .description('fetch the business data of a document, given by its id or docId, from the source system again')
    .option('--try', 'make the calls in this process, show what they find, and store nothing')
    .addOption(workspaceOption)
    .addOption(jsonOption)
    .action(async (reference: string, { try: isTry, ...options }: DocumentOptions & { try?: boolean }) => {
      if (!isTry) return change('enrich', reference, options)
      const { describeTry, tryDocument } = await import('./documents.ts')
      const tried = await tryDocument(await context.config(), reference, options.workspace)
      return printResult(options, tried, describeTry(tried))
    })
}

/** Adds the commands for documents that were discarded for lack of a connection. */
export const addDiscardedVerbs = (program: Command, context: CommandContext) => {
  const discarded = program.command('discarded').description('list, replay and acknowledge documents that were discarded')
  discarded
    .command('list [user/workspace]')
    .description('count the discarded documents that need attention, by repository, of a workspace or of all')
    .addOption(jsonOption)
    .action(async (workspace: string | undefined, options: OutputOptions) => {
      const { describeDiscarded, listDiscarded } = await import('./discarded.ts')
      const groups = await context.inDatabase((db) => listDiscarded(db, workspace))
      printResult(options, groups, describeDiscarded(groups))
    })
  const verbs = {
    replay: 'process the requests of the discarded documents of a repository again, as if they arrived now',
    acknowledge: 'acknowledge the discarded documents of a repository: they are not needed anywhere',
  } as const
  for (const action of ['replay', 'acknowledge'] as const) {
    discarded
      .command(`${action} <user/workspace> <repo_id>`)
      .description(verbs[action])
      .option('--dry-run', 'only count the documents')
      .addOption(jsonOption)
      .action(async (workspace: string, repoId: string, { dryRun, ...options }: OutputOptions & { dryRun?: boolean }) => {
        const { describeTreated, treatDiscardedOf } = await import('./discarded.ts')
        const settings = await context.config()
        const log = await context.openLog(settings)
        const result = await treatDiscardedOf(settings, log, { action, workspace, repoId, dryRun, onProgress: printProgress })
        printResult(options, result, describeTreated(action, result))
      })
  }
}
