import type { Database } from './database.ts'

/** Credentials of a destination, deleted ones included, as they lie in the database. */
export interface SealedCredentials {
  id: string
  workspaceId: string
  sealed: Buffer
}

export const createSealedCredentials = (db: Database) => ({
  /** Those sealed under another key than this one, in order of their ids. Goes through all of a table that is short. */
  listSealedOtherwise: async (keyId: string, afterId: string, limit: number): Promise<SealedCredentials[]> => {
    const { rows } = await db.raw<{ rows: SealedCredentials[] }>(
      `
      select id, workspace_id as "workspaceId", credentials_sealed as sealed
      from destinations
      where id > :afterId
        and length(credentials_sealed) > 2
        -- the envelope of src/security/seal.ts: version, length of the key id, key id
        and substring(credentials_sealed from 3 for get_byte(credentials_sealed, 1)) <> convert_to(:keyId, 'UTF8')
      order by id
      limit :limit
      `,
      { keyId, afterId, limit },
    )
    return rows
  },

  /** @returns false where somebody has saved other ones meanwhile */
  replace: async ({ id, sealed }: SealedCredentials, resealed: Buffer): Promise<boolean> =>
    (await db('destinations').where({ id, credentials_sealed: sealed }).update({ credentials_sealed: resealed })) > 0,
})
