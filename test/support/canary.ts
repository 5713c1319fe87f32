import type { Database } from '../../src/db/database.ts'

/** Returns the tables that contain this text in any column, as text or as bytes. */
export const tablesWith = async (db: Database, text: string): Promise<string[]> => {
  const { rows: tables } = await db.raw<{ rows: { name: string }[] }>(
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
  )
  // Without tables, an empty result would prove nothing.
  expect(tables.length).toBeGreaterThan(20)
  const patterns = { text: `%${text}%`, hex: `%${Buffer.from(text).toString('hex')}%` }
  const found: string[] = []
  for (const { name } of tables) {
    const { rows } = await db.raw<{ rows: unknown[] }>(
      'select 1 from :name: as kept where cast(kept as text) like :text or cast(kept as text) like :hex limit 1',
      { name, ...patterns },
    )
    if (rows.length > 0) found.push(name)
  }
  return found
}
