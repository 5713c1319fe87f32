/** An object of the file or of the database, and what `relay apply` does with it. */
export interface Change {
  workspace: string
  kind: 'workspace' | 'tier' | 'settings' | 'member' | 'api_key' | 'repository' | 'destination' | 'connection' | 'notification'
  name: string
  /** `not_created`: an API key that only `--print-new-keys` creates. `not_in_file`: only `--prune` deletes it. */
  action: 'create' | 'update' | 'delete' | 'unchanged' | 'not_created' | 'not_in_file'
  /** Names of the values that an update changes. */
  fields?: string[]
  /** A new API key. It cannot be displayed again. */
  key?: string
}

export interface ApplyOptions {
  dryRun?: boolean | undefined
  prune?: boolean | undefined
  printNewKeys?: boolean | undefined
}

/** Returns true if the file and the database differ in something that this command changes, or in an API key that does not exist. */
export const isDrift = ({ action }: Change): boolean => action !== 'unchanged' && action !== 'not_in_file'

/** Returns the name of a kind for people: `api key`. */
export const kindName = (kind: Change['kind']): string => kind.replace('_', ' ')
