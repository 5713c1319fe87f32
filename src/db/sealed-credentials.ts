import type { Database } from './database.ts'

/** As they lie in the database. */
export interface SealedCredentials {
  /** Whose: a destination's, deleted ones included, or those of a workspace's bridge. */
  kind: 'destination' | 'rfc'
  id: string
  workspaceId: string
  sealed: Buffer
}

export const createSealedCredentials = (db: Database) => ({
  /** Those sealed under another key than this one, in order of their ids. Goes through all of a table that is short. */
  listSealedOtherwise: async (keyId: string, afterId: string, limit: number): Promise<SealedCredentials[]> => {
    const { rows } = await db.raw<{ rows: SealedCredentials[] }>(
      `
      select kind, id, workspace_id as "workspaceId", sealed
      from (
        select 'destination' as kind, id, workspace_id, credentials_sealed as sealed from destinations
        union all
        select 'rfc', id, id, rfc_credentials_sealed from workspaces
      ) as credentials
      where id > :afterId
        and length(sealed) > 2
        -- the envelope of src/security/seal.ts: version, length of the key id, key id
        and substring(sealed from 3 for get_byte(sealed, 1)) <> convert_to(:keyId, 'UTF8')
      order by id
      limit :limit
      `,
      { keyId, afterId, limit },
    )
    return rows
  },

  /** @returns false where somebody has saved other ones meanwhile */
  replace: async ({ kind, id, sealed }: SealedCredentials, resealed: Buffer): Promise<boolean> => {
    const [table, column] = kind === 'destination' ? ['destinations', 'credentials_sealed'] : ['workspaces', 'rfc_credentials_sealed']
    return (
      (await db(table)
        .where({ id, [column]: sealed })
        .update({ [column]: resealed })) > 0
    )
  },
})
