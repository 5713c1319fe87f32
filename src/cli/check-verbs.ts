import { Argument, Option, type Command } from 'commander'
import { profiles } from '../check-source/check.ts'
import type { CheckSourceOptions } from './check-source.ts'
import type { CommandContext } from './context.ts'
import { createStopSignal } from './stop-signal.ts'

/** Adds the command that checks content servers. */
export const addCheckVerbs = (program: Command, context: CommandContext) => {
  program
    .command('check')
    .description('check systems that speak a protocol of the relay')
    .command('source')
    .description(
      'check a content server as its source system would use it, and delete every document that the check has created; exits with 1 if a check fails',
    )
    .addArgument(new Argument('[user/workspace/repo_id]', 'a repository of this relay, instead of --url'))
    .option('--url <url>', 'address of any content server: http(s)://host:port/script')
    .option('--repository <name>', 'with --url: the content repository')
    .addOption(new Option('--profile <profile>', 'how much is checked').choices(profiles).default('core'))
    .addOption(
      new Option('--throw-away [kind]', 'with --url: sign with a new key (rsa by default), and send its certificate').choices([
        'rsa',
        'dsa',
      ]),
    )
    .option('--wait <minutes>', 'with --throw-away: time to activate the certificate at the content server', '10')
    .option('--certificate <file>', 'with --url: sign with this certificate (PEM), which is active at the content server')
    .option('--key <file>', 'the private key of --certificate (PEM)')
    .option('--auth-id <name>', 'the authId with which --certificate was sent')
    .addOption(new Option('--protocol-version <version>', 'with --url: pVersion').choices(['0045', '0046', '0047']).default('0045'))
    .option('--timeout <seconds>', 'longest wait for an answer, and between two pieces of it', '30')
    .option('--deliver', 'for a repository of this relay: let the documents of the check be delivered')
    .addOption(new Option('--format <format>', 'form of the report').choices(['text', 'json', 'junit', 'html']).default('text'))
    .action(async (repository: string | undefined, options: CheckSourceOptions) => {
      const [{ checkSource }, { isGood }] = await Promise.all([import('./check-source.ts'), import('../check-source/run.ts')])
      const report = await checkSource(repository, options, context, createStopSignal())
      if (!isGood(report)) process.exitCode = 1
    })
}
