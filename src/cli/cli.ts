import { Command } from 'commander'
import { version } from '../base/version.ts'
import { addKeyVerbs, addSealingKeyVerbs, addWorkspaceVerbs } from './administration-verbs.ts'
import { addApplyVerbs } from './apply-verbs.ts'
import { addCheckVerbs } from './check-verbs.ts'
import { createContext } from './context.ts'
import { addDiscardedVerbs, addDocumentVerbs } from './document-verbs.ts'
import { addMigrationVerbs } from './migration-verbs.ts'
import { addDevelopmentVerbs, addServiceVerbs } from './service-verbs.ts'
import { addSetupVerbs } from './setup-verbs.ts'

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
  const context = createContext(variables)

  addServiceVerbs(program, context)
  addSetupVerbs(program, context)
  addCheckVerbs(program, context)
  addDocumentVerbs(program, context)
  addDiscardedVerbs(program, context)
  addMigrationVerbs(program, context)
  addWorkspaceVerbs(program, context)
  addKeyVerbs(program, context)
  addSealingKeyVerbs(program, context)
  addApplyVerbs(program, context)
  addDevelopmentVerbs(program, context)
  return program
}

const loadVariables = async (envFile: string, variables: NodeJS.ProcessEnv) => {
  const { loadEnvFile } = await import('../config/config.ts')
  loadEnvFile(envFile, variables)
}
