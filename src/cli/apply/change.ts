/** An object of the file or of the database, and what `relay apply` does with it. */
export interface Change {
  workspace: string
  kind:
    | 'workspace'
    | 'tier'
    | 'settings'
    | 'member'
    | 'api_key'
    | 'repository'
    | 'destination'
    | 'connection'
    | 'enrichment'
    | 'notification'
    | 'event_subscription'
  name: string
  /** `not_created`: an API key that only `--print-new-keys` creates. `not_in_file`: only `--prune` deletes it. */
  action: 'create' | 'update' | 'delete' | 'unchanged' | 'not_created' | 'not_in_file'
  /** The values that an update changes. */
  fields?: FieldChange[]
  /** A new API key. It cannot be displayed again. */
  key?: string
}

/** A value that an update changes, before and after. A secret has neither, and what is not set is missing. */
export interface FieldChange {
  name: string
  before?: unknown
  after?: unknown
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
