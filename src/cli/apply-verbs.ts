import type { Command } from 'commander'
import { UserError } from '../base/errors.ts'
import { isDrift, type ApplyOptions } from './apply/change.ts'
import type { CommandContext } from './context.ts'
import { jsonOption, print, printJson, printProgress, printResult, type OutputOptions } from './output.ts'

interface ApplyCommand extends ApplyOptions, OutputOptions {
  file: string
  exitCode?: boolean
}

/** Adds the commands that apply and write a file that describes workspaces, and print its schema. */
export const addApplyVerbs = (program: Command, { inDatabase, variables }: CommandContext) => {
  program
    .command('apply')
    .description('create and change workspaces as a YAML file describes them: all of it, or nothing')
    .requiredOption('-f, --file <path>', 'file that describes the workspaces')
    .option('--dry-run', 'only print what would be changed')
    .option('--exit-code', 'with --dry-run: exit with 2 if something would be changed')
    .option('--prune', 'delete what these workspaces have and the file does not contain; revoke such API keys')
    .option('--print-new-keys', 'create missing API keys and print them; they cannot be displayed again')
    .addOption(jsonOption)
    .action(async ({ file, json, exitCode, ...options }: ApplyCommand) => {
      if (exitCode && !options.dryRun) throw new UserError('--exit-code needs --dry-run.')
      const [{ applyFile, withApplyDeps }, { describeChanges }] = await Promise.all([
        import('./apply/apply.ts'),
        import('./apply/describe-changes.ts'),
      ])
      const changes = await inDatabase((db, config) => withApplyDeps(config, variables, (deps) => applyFile(db, file, deps, options)))
      printResult(json ? { json } : {}, changes, describeChanges(changes, options))
      if (exitCode && changes.some(isDrift)) process.exitCode = 2
    })
  program
    .command('export [user/workspace]')
    .description('print the file with which relay apply creates a workspace; credentials are references to environment variables')
    .option('--all', 'export all workspaces')
    .action(async (workspace: string | undefined, { all }: { all?: boolean }) => {
      if ((workspace === undefined) !== (all === true)) throw new UserError('Name one workspace, or use --all.')
      const [{ exportWorkspaces }, { withApplyDeps }] = await Promise.all([import('./apply/export.ts'), import('./apply/apply.ts')])
      const { text, readable } = await inDatabase((db, config) =>
        withApplyDeps(config, variables, (deps) => exportWorkspaces(db, workspace, deps)),
      )
      print(text.trimEnd())
      for (const value of readable) printProgress(`Warning: ${value} is in the file as it is, and may contain a key.`)
    })
  program
    .command('json-schema')
    .description('print the JSON Schema of the file of relay apply, for editors')
    .addOption(jsonOption)
    .action(async () => {
      const { workspacesSchema } = await import('./apply/workspaces-schema.ts')
      printJson(workspacesSchema())
    })
}
