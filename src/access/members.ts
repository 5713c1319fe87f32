import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { createApiKeys } from './api-keys.ts'

/** A person whom API keys and audit log entries name. */
export interface Member {
  id: string
  email: string
  name: string
}

const columns = ['id', 'email', 'name']

export const createMembers = (db: Database | Transaction) => {
  /** Inserts and records a member. @returns undefined if the workspace has a member with this address */
  const insertNew = (workspaceId: string, member: Omit<Member, 'id'>, actor: AuditActor): Promise<Member | undefined> =>
    db.transaction(async (trx) => {
      const [row]: Member[] = await trx('members')
        .insert({ id: newId(), workspace_id: workspaceId, ...member })
        .onConflict(['workspace_id', 'email'])
        .ignore()
        .returning(columns)
      if (!row) return undefined
      const { id, email, name } = row
      const description = `Member ${email} was created.`
      await record(trx, { workspaceId, event: 'member.created', subjectId: id, description, metadata: { email, name }, actor })
      return row
    })

  return {
    /** Inserts and records a member. @throws `AppError` 409 if the workspace has a member with this address */
    insert: async (workspaceId: string, member: Omit<Member, 'id'>, actor: AuditActor): Promise<Member> => {
      const inserted = await insertNew(workspaceId, member, actor)
      if (!inserted) throw new AppError('conflict', `The workspace already has a member ${member.email}.`)
      return inserted
    },

    /**
     * Returns the id of the member with this address. Inserts the member if there is none, with the address as the name. In a transaction,
     * the member cannot be deleted before the transaction ends.
     */
    ensure: async (workspaceId: string, email: string, actor: AuditActor): Promise<string> => {
      for (;;) {
        const inserted = await insertNew(workspaceId, { email, name: email }, actor)
        // The lock waits for a deletion that runs. If that deletes the member, the next insert succeeds.
        const member = inserted ?? (await db('members').select('id').where({ workspace_id: workspaceId, email }).forKeyShare().first())
        if (member) return member.id
      }
    },

    /** Lists every member of a workspace, oldest first. */
    list: (workspaceId: string): Promise<Member[]> =>
      db('members').select<Member[]>(columns).where({ workspace_id: workspaceId }).orderBy('id'),

    /** Changes the name of a member, and records the change if it is one. */
    rename: (workspaceId: string, id: string, name: string, actor: AuditActor): Promise<void> =>
      db.transaction(async (trx) => {
        const current = await findForChange(trx, workspaceId, id)
        if (!current || current.name === name) return
        await trx('members').where({ id }).update({ name })
        await record(trx, {
          workspaceId,
          event: 'member.updated',
          subjectId: id,
          description: `Member ${current.email} was changed: name.`,
          metadata: { email: current.email, before: { name: current.name }, after: { name } },
          actor,
        })
      }),

    /** Deletes a member and revokes the API keys of the member, which stay as evidence. @throws `AppError` 404 */
    delete: (workspaceId: string, id: string, actor: AuditActor): Promise<void> =>
      db.transaction(async (trx) => {
        // An insert of a key for the member waits for this lock, and then fails or belongs to a new member.
        const current = await findForChange(trx, workspaceId, id)
        if (!current) throw notFound()
        const keys = await trx('api_keys')
          .where({ workspace_id: workspaceId, member_id: id })
          .whereNull('revoked_at')
          .orderBy('id')
          .pluck('id')
        for (const key of keys) await createApiKeys(trx).revoke(key, actor)
        await trx('members').where({ id }).delete()
        const { email, name } = current
        const description = `Member ${email} was deleted.`
        await record(trx, { workspaceId, event: 'member.deleted', subjectId: id, description, metadata: { email, name }, actor })
      }),
  }
}

const findForChange = (trx: Transaction, workspaceId: string, id: string): Promise<Member | undefined> =>
  trx('members').select<Member>(columns).where({ workspace_id: workspaceId, id }).forUpdate().first()
