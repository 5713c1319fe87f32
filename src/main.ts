#!/usr/bin/env node
import { UserError } from './base/errors.ts'
import { createCli } from './cli/cli.ts'
import { endWithReader } from './cli/output.ts'

// A library may leave a thread or a socket open that it gives nobody to close, as the Temporal SDK does with the threads of workflows if its
// worker cannot be created. Such a leftover must not keep a process alive that has failed.
const leftoverMaxMs = 2_000

endWithReader()
try {
  await createCli(process.env).parseAsync(process.argv)
} catch (thrown) {
  // A UserError, which a refusal is too, describes a problem that the user can fix: its message is enough. Anything else is a bug and is
  // printed with its stack trace.
  console.error(thrown instanceof UserError ? `relay: ${thrown.message}` : thrown)
  process.exitCode = 1
  setTimeout(() => process.exit(), leftoverMaxMs).unref()
}
