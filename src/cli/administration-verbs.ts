import { Argument, Option, type Command } from 'commander'
import type { KeyOptions } from '../access/key-administration.ts'
import { countOf } from '../base/count-of.ts'
import { UserError } from '../base/errors.ts'
import { tiers, type Tier } from '../domain/bounds.ts'
import type { WorkspaceState } from '../observe/workspace-states.ts'
import { keyLevels } from '../security/levels.ts'
import type { CommandContext } from './context.ts'
import { cellOf, jsonOption, printProgress, printResult, tableOf, type OutputOptions } from './output.ts'

const administration = () => import('../workspace/administration.ts')
const keyAdministration = () => import('../access/key-administration.ts')

const troubleOf = ({ attention, failing, refusing, held }: WorkspaceState): string =>
  [
    ...(attention > 0 ? [countOf(attention, 'document needs attention', 'documents need attention')] : []),
    ...(failing > 0 ? [countOf(failing, 'destination fails', 'destinations fail')] : []),
    ...(refusing > 0 ? [`${countOf(refusing, 'repository refuses', 'repositories refuse')} all requests`] : []),
    ...(held > 0 ? [countOf(held, 'delivery is held', 'deliveries are held')] : []),
  ].join(', ') || '-'

/** Adds the commands that create, list, change and delete workspaces. */
export const addWorkspaceVerbs = (program: Command, { inDatabase }: CommandContext) => {
  const workspace = program.command('workspace').description('manage workspaces')
  workspace
    .command('create <user/workspace>')
    .description('create a workspace')
    .addOption(jsonOption)
    .action(async (name: string, options: OutputOptions) => {
      const { createWorkspace } = await administration()
      const created = await inDatabase((db) => createWorkspace(db, name))
      printResult(options, created, [`Created workspace ${name}: ${created.id}`])
    })
  workspace
    .command('tier <user/workspace>')
    .description('set the tier of a workspace; the compliance tier keeps its audit log indefinitely')
    .addArgument(new Argument('<tier>').choices(tiers))
    .addOption(jsonOption)
    .action(async (name: string, tier: Tier, options: OutputOptions) => {
      const { setTier } = await administration()
      const changed = await inDatabase((db) => setTier(db, name, tier))
      printResult(options, changed, [`Workspace ${name} is in the ${tier} tier.`])
    })
  workspace
    .command('delete <user/workspace>')
    .description('delete a workspace and everything in it, with its audit log; without --yes, print what would be deleted')
    .option('--yes', 'delete it; this cannot be undone')
    .addOption(jsonOption)
    .action(async (name: string, options: OutputOptions & { yes?: boolean }) => {
      const confirmed = options.yes === true
      const { deleteWorkspace, describeContents } = await import('../workspace/delete-workspace.ts')
      const result = await inDatabase((db) => deleteWorkspace(db, name, { confirmed }))
      const contents = describeContents(result.contents)
      printResult(options, result, [
        confirmed ? `Deleted workspace ${name}: ${contents}, and its audit log.` : `Workspace ${name} would be deleted: ${contents}.`,
      ])
      if (confirmed) return
      process.exitCode = 1
      printProgress('Nothing was deleted. Repeat the command with --yes to delete the workspace and everything in it, with its audit log.')
    })
  workspace
    .command('list')
    .description('list all workspaces with what is open in them; those with trouble come first')
    .addOption(jsonOption)
    .action(async (options: OutputOptions) => {
      const { createWorkspaceStates } = await import('../observe/workspace-states.ts')
      const { snakeCased } = await import('../domain/casing.ts')
      const states = await inDatabase((db, config) => createWorkspaceStates(db, config).list())
      printResult(
        options,
        states.map(snakeCased),
        tableOf(
          ['WORKSPACE', 'TROUBLE', 'OPEN', 'OLDEST OPEN (UTC)', 'LAST REQUEST (UTC)', 'STORED BYTES', 'ID'],
          states.map((each) => [
            `${each.userSlug}/${each.workspaceSlug}`,
            troubleOf(each),
            String(each.open),
            cellOf(each.oldestOpenAt),
            cellOf(each.lastRequestAt),
            String(each.storedBytes),
            each.id,
          ]),
        ),
      )
    })
}

/** Adds the commands that create, list and revoke API keys. */
export const addKeyVerbs = (program: Command, { inDatabase }: CommandContext) => {
  const key = program.command('key').description('manage API keys')
  key
    .command('create <user/workspace>')
    .description('create an API key and print it; the key cannot be displayed again')
    .addOption(new Option('--level <level>', 'permissions of the key').choices([...keyLevels]).makeOptionMandatory())
    .option('--name <name>', 'purpose of the key', 'made on the command line')
    .option('--member <email>', 'owner of the key in the audit log: a member of the workspace, created if it does not exist')
    .option('--expires-at <time>', 'expiry time in ISO 8601; without it the key does not expire')
    .addOption(jsonOption)
    .action(async (workspace: string, { json, ...options }: Omit<KeyOptions, 'workspace'> & OutputOptions) => {
      const { createKey } = await keyAdministration()
      const created = await inDatabase((db) => createKey(db, { workspace, ...options }))
      printResult({ json }, created, [created.key])
    })
  key
    .command('list [user/workspace]')
    .description('list the API keys of a workspace, or of all workspaces')
    .addOption(jsonOption)
    .action(async (workspace: string | undefined, options: OutputOptions) => {
      const { listKeys } = await keyAdministration()
      const keys = await inDatabase((db) => listKeys(db, workspace))
      printResult(
        options,
        keys,
        tableOf(
          ['WORKSPACE', 'NAME', 'LEVEL', 'LAST USED (UTC)', 'EXPIRES (UTC)', 'REVOKED (UTC)', 'ID'],
          keys.map((each) => [
            `${each.user_slug}/${each.workspace_slug}`,
            each.name,
            each.level,
            cellOf(each.last_used_at),
            cellOf(each.expires_at),
            cellOf(each.revoked_at),
            each.id,
          ]),
        ),
      )
    })
  key
    .command('revoke <id>')
    .description('revoke an API key')
    .addOption(jsonOption)
    .action(async (id: string, options: OutputOptions) => {
      const { revokeKey } = await keyAdministration()
      const revoked = await inDatabase((db) => revokeKey(db, id))
      printResult(options, revoked, [`Revoked key ${id}.`])
    })
}

/** Adds the command that seals all credentials with a new key. */
export const addSealingKeyVerbs = (program: Command, { inDatabase, variables }: CommandContext) => {
  program
    .command('secrets')
    .description('manage stored credentials, which the keys in RELAY_SECRET_KEYS seal')
    .command('rotate')
    .description('seal all credentials with the first key of RELAY_SECRET_KEYS; safe while the relay runs')
    .addOption(jsonOption)
    .action(async (options: OutputOptions) => {
      // The key of a running script/server would do for other commands. Here it would report success without having changed anything.
      if (!variables['RELAY_SECRET_KEYS']) {
        throw new UserError('Set RELAY_SECRET_KEYS to the new key, followed by the keys that sealed the credentials until now.')
      }
      const [{ rotateKeys }, { createKeyRing }] = await Promise.all([import('../access/sealing-keys.ts'), import('../security/seal.ts')])
      const { resealed, unreadable, sealingId } = await inDatabase(async (db, { RELAY_SECRET_KEYS }) => {
        const keyRing = createKeyRing(RELAY_SECRET_KEYS)
        return { ...(await rotateKeys(db, keyRing)), sealingId: keyRing.sealingId }
      })
      printResult(options, { resealed, unreadable }, [`Credentials re-sealed with key ${sealingId}: ${resealed}`])
      if (unreadable.length === 0) return
      process.exitCode = 1
      const ids = unreadable.join(', ')
      printProgress(
        `No key in RELAY_SECRET_KEYS opens the credentials of these destinations, enrichments, repositories or workspaces. Enter them again: ${ids}`,
      )
    })
}
