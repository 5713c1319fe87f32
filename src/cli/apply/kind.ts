import { isDeepStrictEqual } from 'node:util'
import { AppError, type ErrorDetail } from '../../base/errors.ts'
import type { Transaction } from '../../db/database.ts'
import type { ApplyOptions, Change, FieldChange } from './change.ts'
import { issuesOf, type FileDeps } from './read-workspaces-file.ts'
import type { StateDeps, WorkspaceState } from './workspace-state.ts'
import type { WantedWorkspace } from './workspaces-file.ts'

export type ApplyDeps = FileDeps & StateDeps

/** One run of the command, and what it has found so far. */
export type Run = ApplyDeps &
  ApplyOptions & {
    /** The path of the workspace in the file. */
    at: string
    changes: Change[]
    issues: ErrorDetail[]
  }

/** A workspace of the file and its counterpart in the database. */
export interface Target {
  trx: Transaction
  workspaceId: string
  wanted: WantedWorkspace
  state: WorkspaceState
  run: Run
}

/** One kind of object: how those of the file are compared with those of the workspace, and the use cases that change them. */
export interface Kind<Wanted, Current> {
  kind: Change['kind']
  /** The key of the list in the file. */
  list: string
  wanted: readonly Wanted[]
  current: readonly Current[]
  nameInFile(wanted: Wanted): string
  nameOf(current: Current): string
  /** Identity of an object of the file. Objects are found by it; without this function, by their name. */
  identityInFile?(wanted: Wanted): string
  /** Identity of an existing object. */
  identityOf?(current: Current): string
  /** @returns the action, if it is not `create`, and a new API key */
  create(wanted: Wanted): Promise<Pick<Change, 'key'> & { action?: 'not_created' }>
  /** Returns the values that differ. */
  compare(current: Current, wanted: Wanted): FieldChange[] | Promise<FieldChange[]>
  /** @param fields the names of the values that differ */
  update(current: Current, wanted: Wanted, fields: string[]): Promise<unknown>
  delete(current: Current): Promise<unknown>
}

/** Returns the values that the file gives and that differ. */
export const listDifferences = (current: Record<string, unknown>, wanted: Record<string, unknown>): FieldChange[] =>
  Object.keys(wanted)
    .filter((key) => !isDeepStrictEqual(current[key], wanted[key]))
    .map((name) => ({ name, before: current[name], after: wanted[name] }))

/** Creates and updates the objects of one kind. @returns a function that deletes those that the file does not contain, or reports them */
export const applyKind = async <Wanted, Current>(
  { wanted: { slug }, run }: Target,
  { kind, list, wanted, current, nameInFile, nameOf, identityInFile = nameInFile, identityOf = nameOf, ...actions }: Kind<Wanted, Current>,
): Promise<() => Promise<void>> => {
  const byIdentity = Map.groupBy(current, identityOf)
  for (const [index, item] of wanted.entries()) {
    const name = nameInFile(item)
    const at = `${run.at}.${list}.${index}`
    const [found, ...others] = byIdentity.get(identityInFile(item)) ?? []
    try {
      // Two API keys may have the same name, and nothing of a key can be changed.
      if (others.length > 0 && kind !== 'api_key') throw ambiguous(others.length + 1, list)
      const fields = found ? await actions.compare(found, item) : []
      if (!found) run.changes.push({ workspace: slug, kind, name, action: 'create', ...(await actions.create(item)) })
      else if (fields.length === 0) run.changes.push({ workspace: slug, kind, name, action: 'unchanged' })
      else {
        await actions.update(
          found,
          item,
          fields.map((field) => field.name),
        )
        run.changes.push({ workspace: slug, kind, name, action: 'update', fields })
      }
    } catch (thrown) {
      run.issues.push(...issuesOf(thrown, at))
    }
  }
  const inFile = new Set(wanted.map(identityInFile))
  return async () => {
    for (const each of current.filter((one) => !inFile.has(identityOf(one)))) {
      try {
        if (run.prune) await actions.delete(each)
        run.changes.push({ workspace: slug, kind, name: nameOf(each), action: run.prune ? 'delete' : 'not_in_file' })
      } catch (thrown) {
        run.issues.push(...issuesOf(thrown, `${run.at}.${list}`))
      }
    }
  }
}

const ambiguous = (count: number, list: string) =>
  new AppError('validation_failed', `the workspace has ${count} ${list} with this name. Rename all of them but one`)
