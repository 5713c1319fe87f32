#!/usr/bin/env node
// `relay check source --url` as a package of its own. It imports what this takes, and nothing that needs a database: the compiler packs the
// modules that it finds from here on.
import { Command } from 'commander'
import { version } from '../../src/base/version.ts'
import { endWithReader, printFailure } from '../../src/cli/output.ts'
import { createStopSignal } from '../../src/cli/stop-signal.ts'
import { describeCheck, type ServerCheckOptions } from './src/check-options.ts'
import { checkServer } from './src/check-server.ts'

endWithReader()
try {
  await describeCheck(new Command('content-server-check'))
    .version(version, '--version', 'print the version')
    .action((options: ServerCheckOptions) => checkServer(options, createStopSignal()))
    .parseAsync()
} catch (thrown) {
  printFailure(thrown, 'content-server-check')
  process.exitCode = 1
}
