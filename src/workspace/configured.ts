import type { z } from 'zod'
import { newId } from '../base/ids.ts'
import type { AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { only, type ChangeOf, type ConfiguredKind, type Named } from './configured-kind.ts'
import { lockRouting } from './workspaces.ts'

/** A change that is being made. */
interface Changing<Schema extends z.ZodObject, Row, More> {
  workspaceId: string
  id: string
  change: ChangeOf<Schema> & More
  /** Undefined for a new object. */
  current: Row | undefined
  /** The names of the values that differ. */
  changed: readonly string[]
}

/** The rules that other kinds do not have. */
interface Rules<Schema extends z.ZodObject, Row, More> {
  /** Checks what takes its time, before the workspace is locked. @throws AppError 422 */
  prepare?(change: ChangeOf<Schema> & More, current: () => Promise<Row | undefined>): Promise<void>
  /** @throws AppError 422 if the change must not be made. */
  check?(trx: Transaction, changing: Changing<Schema, Row, More>): Promise<void> | void
  /** Returns columns that a change also sets, and how the audit entry names what else differs. */
  alsoSet?(trx: Transaction, changing: Changing<Schema, Row, More>): { columns?: Named; names?: string[] }
  /** Writes what is not in the table, and starts what follows from the change. */
  written?(trx: Transaction, changing: Changing<Schema, Row, More>): Promise<void>
  deleted?(trx: Transaction, id: string): Promise<void>
}

/** Creates the use cases of a kind of object. Changes in a workspace take turns, so that nothing is deleted while an object begins to refer to it. */
export const createConfigured = <Schema extends z.ZodObject, Row extends { id: string; name: string }, More = unknown>(
  db: Database | Transaction,
  kind: ConfiguredKind<Schema, Row>,
  rules: Rules<Schema, Row, More> = {},
) => {
  type Change = ChangeOf<Schema> & More
  type CheckVersion = (current: Row) => void

  const changeIn = async (
    trx: Transaction,
    workspaceId: string,
    id: string,
    change: Change,
    actor: AuditActor,
    checkVersion?: CheckVersion,
  ) => {
    const workspace = await lockRouting(trx, workspaceId)
    const current = await kind.find(trx, workspaceId, id)
    checkVersion?.(current)
    const wanted = kind.valuesOf(change)
    const changed = kind.changedBy(current, wanted)
    const changing = { workspaceId, id, change, current, changed }
    await rules.check?.(trx, changing)
    const { columns, names: others = [] } = rules.alsoSet?.(trx, changing) ?? {}
    if (changed.length + others.length === 0) return { workspace, current, row: current, changed }
    await trx(kind.table)
      .where({ id })
      .update({ ...kind.columnsOf(only(wanted, changed)), ...columns, updated_at: trx.fn.now() })
    await rules.written?.(trx, changing)
    const row = await kind.find(trx, workspaceId, id)
    await kind.recordChange(trx, workspaceId, { current, row, others }, actor)
    return { workspace, current, row, changed }
  }

  return {
    list: (workspaceId: string, page: PageRequest): Promise<Page<Row>> => kind.list(db, workspaceId, page),

    /** @throws AppError 404 */
    find: (workspaceId: string, id: string): Promise<Row> => kind.find(db, workspaceId, id),

    versionOf: kind.versionOf,

    /** @param columns what a new object has besides its values. @throws AppError 422 */
    insert: async (workspaceId: string, values: CamelCasedOutput<Schema> & More, actor: AuditActor, columns: object = {}): Promise<Row> => {
      await rules.prepare?.(values, async () => undefined)
      return db.transaction(async (trx) => {
        await lockRouting(trx, workspaceId)
        const id = newId()
        const named = kind.valuesOf(values)
        const changing = { workspaceId, id, change: values, current: undefined, changed: Object.keys(named) }
        await rules.check?.(trx, changing)
        const others = rules.alsoSet?.(trx, changing).columns
        await trx(kind.table).insert({ id, workspace_id: workspaceId, ...kind.columnsOf(named), ...others, ...columns })
        await rules.written?.(trx, changing)
        const row = await kind.find(trx, workspaceId, id)
        await kind.recordCreation(trx, workspaceId, row, actor)
        return row
      })
    },

    /** Changes an object in a transaction that does more. @returns the object before and after, and the name of the workspace */
    changeIn,

    /**
     * Writes and records the values that differ, if any.
     * @param checkVersion throws if the object must not be changed as it is
     * @throws AppError 404 or 422
     */
    update: async (workspaceId: string, id: string, change: Change, actor: AuditActor, checkVersion?: CheckVersion): Promise<Row> => {
      await rules.prepare?.(change, () => kind.find(db, workspaceId, id))
      return db.transaction(async (trx) => (await changeIn(trx, workspaceId, id, change, actor, checkVersion)).row)
    },

    /** @param checkVersion throws if the object must not be deleted as it is. @throws AppError 404 */
    delete: (workspaceId: string, id: string, actor: AuditActor, checkVersion?: CheckVersion): Promise<void> =>
      db.transaction(async (trx) => {
        await lockRouting(trx, workspaceId)
        const current = await kind.find(trx, workspaceId, id)
        checkVersion?.(current)
        await kind.remove(trx, workspaceId, current, actor)
        await rules.deleted?.(trx, id)
      }),
  }
}
