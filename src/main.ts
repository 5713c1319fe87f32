#!/usr/bin/env node
import { createCli } from './cli/cli.ts'
import { endWithReader, printFailure } from './cli/output.ts'

// A library may leave a thread or a socket open without a way to close it, as the Temporal SDK does with the threads of workflows if its
// worker cannot be created. Such a leftover must not keep a process alive that has failed.
const leftoverMaxMs = 2_000

endWithReader()
try {
  await createCli(process.env).parseAsync(process.argv)
} catch (thrown) {
  printFailure(thrown, 'relay')
  process.exitCode = 1
  setTimeout(() => process.exit(), leftoverMaxMs).unref()
}
