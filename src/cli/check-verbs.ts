import { Argument, type Command } from 'commander'
import { describeCheck } from '../../clients/check-source/src/check-options.ts'
import type { CheckSourceOptions } from './check-source.ts'
import type { CommandContext } from './context.ts'
import { createStopSignal } from './stop-signal.ts'

/** Adds the command that checks content servers. */
export const addCheckVerbs = (program: Command, context: CommandContext) => {
  const check = program.command('check').description('check systems that speak a protocol of the relay')
  describeCheck(check.command('source'), { hasOther: true })
    .addArgument(new Argument('[user/workspace/repo_id]', 'a repository of this relay, instead of --url and the options about its server'))
    .option('--deliver', 'for a repository of this relay: let the documents of the check be delivered')
    .action(async (repository: string | undefined, options: CheckSourceOptions) => {
      const { checkSource } = await import('./check-source.ts')
      await checkSource(repository, options, context, createStopSignal())
    })
}
