import { Option, type Command } from 'commander'
import { profiles, type Profile } from './check.ts'

const formats = ['text', 'json', 'junit', 'html'] as const

/** Options of a check, whether of any content server or of a repository of this relay. */
export interface CheckOptions {
  profile: Profile
  timeout: string
  format: (typeof formats)[number]
}

/** Options of a check of any content server. */
export interface ServerCheckOptions extends CheckOptions {
  url: string
  repository?: string
  throwAway?: true | 'rsa' | 'dsa'
  wait: string
  certificate?: string
  key?: string
  authId?: string
  protocolVersion: string
}

/**
 * Gives a command the description and the options of `relay check source`, which the package of clients/check-source has as well.
 * @param hasOther if true, the command can also check something other than a server, so that `--url` and `--repository` may be missing
 */
export const describeCheck = (command: Command, { hasOther = false } = {}): Command =>
  command
    .description(
      'check a content server as its source system would use it, and delete every document that the check has created; exits with 1 if a check fails',
    )
    .addOption(new Option('--url <url>', 'address of any content server: http(s)://host:port/script').makeOptionMandatory(!hasOther))
    .addOption(new Option('--repository <name>', 'the content repository of that server').makeOptionMandatory(!hasOther))
    .addOption(new Option('--profile <profile>', 'how much is checked').choices(profiles).default('core'))
    .addOption(new Option('--throw-away [kind]', 'sign with a new key (rsa by default), and send its certificate').choices(['rsa', 'dsa']))
    .option('--wait <minutes>', 'with --throw-away: time to activate the certificate at the content server', '10')
    .option('--certificate <file>', 'sign with this certificate (PEM), which is active at the content server')
    .option('--key <file>', 'the private key of --certificate (PEM)')
    .option('--auth-id <name>', 'the authId with which --certificate was sent')
    .addOption(new Option('--protocol-version <version>', 'pVersion').choices(['0045', '0046', '0047']).default('0045'))
    .option('--timeout <seconds>', 'longest wait for an answer, and between two pieces of it', '30')
    .addOption(new Option('--format <format>', 'form of the report').choices(formats).default('text'))
