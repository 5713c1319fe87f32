import { newId } from '../ids.ts'
import { record, type AuditActor } from './audit.ts'
import type { Database, Transaction } from './database.ts'

/** A person whom API keys and audit log entries name. */
export interface Member {
  id: string
  email: string
  name: string
}

const columns = ['id', 'email', 'name']

export const createMembers = (db: Database | Transaction) => {
  /** Inserts and records a member. @returns undefined if the workspace has a member with this address */
  const insert = (workspaceId: string, member: Omit<Member, 'id'>, actor: AuditActor): Promise<Member | undefined> =>
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
    insert,

    /** Returns the id of the member with this address. Inserts the member if there is none, with the address as the name. */
    ensure: async (workspaceId: string, email: string, actor: AuditActor): Promise<string> => {
      const inserted = await insert(workspaceId, { email, name: email }, actor)
      const member = inserted ?? (await db('members').select<Member>(columns).where({ workspace_id: workspaceId, email }).first())
      return member!.id
    },

    exists: async (workspaceId: string, id: string): Promise<boolean> =>
      (await db('members').select('id').where({ workspace_id: workspaceId, id }).first()) !== undefined,
  }
}

export type Members = ReturnType<typeof createMembers>
