import { Command } from 'commander'
import { version } from '../base/version.ts'
import { addKeyVerbs, addSealingKeyVerbs, addWorkspaceVerbs } from './administration-verbs.ts'
import { addApplyVerbs } from './apply-verbs.ts'
import { addCheckVerbs } from './check-verbs.ts'
import { createContext } from './context.ts'
import { addDiscardedVerbs, addDocumentVerbs } from './document-verbs.ts'
import { addLegalHoldVerbs } from './legal-hold-verbs.ts'
import { addMigrationVerbs } from './migration-verbs.ts'
import { addProofVerbs } from './proof-verbs.ts'
import { addDevelopmentVerbs, addServiceVerbs } from './service-verbs.ts'
import { addSetupVerbs } from './setup-verbs.ts'

/** The commands by what they are for, as the help lists them. Others stand below. */
export const commandGroups: Readonly<Record<string, readonly string[]>> = {
  'Documents:': ['find', 'show', 'failures', 'retry', 'attempt', 'deliver', 'enrich', 'discarded', 'hold'],
  'Run:': ['server', 'demo', 'api', 'worker', 'mcp'],
  'Workspaces and keys:': ['workspace', 'key', 'secrets', 'apply', 'export'],
  'Migrate from another content server:': ['migrate-documents'],
  'Set up and check:': ['migrate', 'doctor', 'check', 'contents', 'reconcile', 'promote', 'proof', 'describe'],
}

/**
 * Creates the command line. Results go to standard output, logs and progress to standard error.
 *
 * The modules of a verb are imported when it runs: loading the whole relay takes a CPU second, `relay --version` a tenth of it.
 */
export const createCli = (variables: NodeJS.ProcessEnv): Command => {
  const program = new Command('relay')
    .description('Receives documents from an enterprise source system and delivers each to every connected destination.')
    .version(version, '--version', 'print the version')
    .option('--env-file <path>', 'read variables that are not set from a file of NAME=value lines')
    .hook('preAction', (command) => {
      const { envFile } = command.opts<{ envFile?: string }>()
      return envFile === undefined ? undefined : loadVariables(envFile, variables)
    })
    .showHelpAfterError('relay --help lists the commands, relay COMMAND --help the options of one.')
    .commandsGroup('Other:')
    .helpCommand(true)
  const context = createContext(variables)

  addDocumentVerbs(program, context)
  addDiscardedVerbs(program, context)
  addLegalHoldVerbs(program, context)
  addServiceVerbs(program, context)
  addDevelopmentVerbs(program, context)
  addWorkspaceVerbs(program, context)
  addKeyVerbs(program, context)
  addSealingKeyVerbs(program, context)
  addMigrationVerbs(program, context)
  addProofVerbs(program, context)
  addSetupVerbs(program, context)
  addCheckVerbs(program, context)
  addApplyVerbs(program, context)
  for (const [heading, names] of Object.entries(commandGroups)) {
    for (const command of program.commands) if (names.includes(command.name())) command.helpGroup(heading)
  }
  return program
}

const loadVariables = async (envFile: string, variables: NodeJS.ProcessEnv) => {
  const { loadEnvFile } = await import('../config/config.ts')
  loadEnvFile(envFile, variables)
}
