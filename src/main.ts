#!/usr/bin/env node
import { createCli } from './cli.ts'
import { UserError } from './errors.ts'

try {
  await createCli(process.env).parseAsync(process.argv)
} catch (thrown) {
  // what the person at the keyboard can mend is told in a sentence; the rest is a bug, and shows where
  console.error(thrown instanceof UserError ? `relay: ${thrown.message}` : thrown)
  process.exitCode = 1
}
