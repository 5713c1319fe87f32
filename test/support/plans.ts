import type { Database } from '../../src/db/database.ts'

export interface Statement {
  sql: string
  bindings: readonly unknown[]
}

/** A node of a plan, as `explain (format json)` describes it. */
export interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Cond'?: string
  'Plan Rows': number
  // The rest only with `analyze` and `buffers`.
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

/** Returns a node and all below it. */
export const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** Returns the statements that `work` runs, without those that begin and commit transactions. */
export const statementsOf = async (db: Database, work: () => Promise<unknown>): Promise<Statement[]> => {
  const statements: Statement[] = []
  const record = ({ sql, bindings, options }: Statement & { options?: { values?: unknown[] } }) => {
    // A prepared statement has its values in the options.
    if (!/^(begin|commit)/i.test(sql)) statements.push({ sql, bindings: options?.values ?? bindings })
  }
  db.on('query', record)
  try {
    await work()
  } finally {
    db.removeListener('query', record)
  }
  return statements
}

/** @param options of `explain`, such as `analyze, buffers`, with which the statement runs */
export const planOf = async (db: Database, { sql, bindings }: Statement, options = ''): Promise<Plan> => {
  // Uses the driver directly, because the SQL already has the placeholders of PostgreSQL.
  const connection = await db.client.acquireConnection()
  try {
    const { rows } = await connection.query(`explain (${[options, 'format json'].filter(Boolean).join(', ')}) ${sql}`, bindings)
    return rows[0]['QUERY PLAN'][0].Plan
  } finally {
    await db.client.releaseConnection(connection)
  }
}

/** Runs a statement. @returns its plan, and the number of pages of tables and indexes that it has read */
export const readingOf = async (db: Database, statement: Statement): Promise<{ plan: Plan; pages: number }> => {
  const plan = await planOf(db, statement, 'analyze, buffers')
  return { plan, pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] }
}
