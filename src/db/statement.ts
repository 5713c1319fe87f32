import type { Database, Transaction } from './database.ts'

const parameter = /(?<!:):([A-Za-z]\w*)/g

/** Replaces `:name` by `$1`, `$2`, ...: the same name by the same number. A cast like `::text` is left alone. */
export const numberParameters = (sql: string): { text: string; names: string[] } => {
  const names: string[] = []
  const text = sql.replaceAll(parameter, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return { text, names }
}

/**
 * Creates a statement with parameters like `:documentId` that PostgreSQL parses and plans once per connection, and not at each execution.
 * knex would look for the parameters at each execution as well, and send one that occurs twice two times.
 * @param name identifies the statement within a connection
 */
export const createStatement = <Row>(name: string, sql: string) => {
  const { text, names } = numberParameters(sql)
  // knex replaces question marks.
  if (text.includes('?')) throw new TypeError(`the statement ${name} contains a question mark`)
  return async (db: Database | Transaction, values: Record<string, unknown>): Promise<Row[]> => {
    const missing = names.find((parameterName) => values[parameterName] === undefined)
    if (missing !== undefined) throw new TypeError(`the statement ${name} lacks a value for ${missing}`)
    const { rows } = await db.raw<{ rows: Row[] }>(text).options({ name, values: names.map((parameterName) => values[parameterName]) })
    return rows
  }
}
