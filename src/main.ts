#!/usr/bin/env node
import { createCli } from './cli/cli.ts'
import { endLeftovers, endWithReader, printFailure } from './cli/output.ts'

endWithReader()
try {
  await createCli(process.env).parseAsync(process.argv)
} catch (thrown) {
  printFailure(thrown, 'relay')
  process.exitCode = 1
  endLeftovers()
}
