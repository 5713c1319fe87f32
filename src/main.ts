#!/usr/bin/env node
import { UserError } from './base/errors.ts'
import { createCli } from './cli/cli.ts'

try {
  await createCli(process.env).parseAsync(process.argv)
} catch (thrown) {
  // A UserError, which a refusal is too, describes a problem that the user can fix: its message is enough. Anything else is a bug and is
  // printed with its stack trace.
  console.error(thrown instanceof UserError ? `relay: ${thrown.message}` : thrown)
  process.exitCode = 1
}
