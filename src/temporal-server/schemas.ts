import { DatabaseError, escapeIdentifier, type Client } from 'pg'
import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { runProgram } from '../programs/programs.ts'
import { minorOf, type TemporalPrograms } from './find-programs.ts'
import { whileNoOtherPrepares } from './ownership.ts'
import { schemas, storeOf, toolVariables, type SchemaName } from './store.ts'

// The comment of the schema `temporal` says whose it is.
const beingMade = 'Temporal, being made by relay migrate'
const madeFor = /^Temporal (\d+\.\d+\.\d+)$/
const insufficientPrivilege = '42501'
const toolTimeoutMs = 10 * 60_000
const names = Object.keys(schemas) as SchemaName[]

/** Returns the comment of the schema `temporal`, null if it has none, undefined if there is no such schema. */
const readComment = async (client: Client): Promise<string | null | undefined> => {
  const { rows } = await client.query<{ comment: string | null }>(
    "select obj_description(oid, 'pg_namespace') as comment from pg_namespace where nspname = 'temporal'",
  )
  return rows[0]?.comment
}

const createSchemas = async (client: Client): Promise<void> => {
  try {
    await client.query(
      `begin; create schema temporal; create schema temporal_visibility; comment on schema temporal is '${beingMade}'; commit`,
    )
  } catch (thrown) {
    await client.query('rollback')
    if (!(thrown instanceof DatabaseError) || thrown.code !== insufficientPrivilege) throw thrown
    throw new UserError('The role of DATABASE_URL may not create the schemas of Temporal. Make it the owner of the database.', {
      cause: thrown,
    })
  }
}

/**
 * Narrows each index of a search attribute to the workflows that have the attribute. Temporal makes 59 of them, and a relay fills nine: without
 * this, the two writes of a workflow take 3.9 instead of 2.4 CPU-ms of PostgreSQL, and its indexes 43 instead of 12 KiB. A search for a value
 * finds its index as before, and the names stay, which updates of Temporal use.
 */
const narrowIndexes = async (client: Client): Promise<void> => {
  const { rows } = await client.query<{ name: string; definition: string; attribute: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition, a.attname as attribute
      from pg_index i
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[1]
      where i.indrelid = to_regclass('temporal_visibility.executions_visibility') and i.indpred is null and a.attgenerated <> ''`,
  )
  for (const { name, definition, attribute } of rows)
    await client.query(`drop index ${name}; ${definition} where ${escapeIdentifier(attribute)} is not null`)
}

const refuseSkipped = (found: string, version: string): void => {
  if (Math.abs(minorOf(version) - minorOf(found)) <= 1) return
  throw new UserError(
    `Temporal ${found} has written this database, and this relay brings ${version}. Temporal takes every minor version in turn: ` +
      `run releases of the relay with the versions between them first.`,
  )
}

/**
 * Makes and updates the schemas of Temporal in the relay's database. What is there already stays. A second process waits for the first.
 * @returns the version of Temporal that they are for
 * @throws `UserError` if a minor version would be skipped, or the database has a schema `temporal` that another program made
 */
export const prepareSchemas = (
  config: Pick<Config, 'DATABASE_URL' | 'DATABASE_TRANSACTION_POOLING' | 'childEnvironment'>,
  { sqlTool, version }: TemporalPrograms,
  signal?: AbortSignal,
): Promise<string> => {
  const store = storeOf(config)
  if (names.includes(store.user as SchemaName))
    throw new UserError(`A role with the name ${store.user} finds the tables of Temporal in place of its own. Give the relay another one.`)
  const runTool = (schema: SchemaName, ...args: string[]) =>
    runProgram(sqlTool, args, {
      env: { ...config.childEnvironment, ...toolVariables(store, schema) },
      timeoutMs: toolTimeoutMs,
      signal,
      name: 'temporal-sql-tool',
    })

  return whileNoOtherPrepares(
    config,
    async (client) => {
      const comment = await readComment(client)
      if (comment === undefined) await createSchemas(client)
      const found = madeFor.exec(comment ?? '')?.[1]
      if (comment !== undefined && comment !== beingMade && found === undefined)
        throw new UserError('The database has a schema temporal that this relay has not made. Use another database, or rename the schema.')
      if (found !== undefined) refuseSkipped(found, version)
      // A database that was restored has the tables, and perhaps another name.
      if (found !== undefined)
        for (const name of names) await client.query(`update ${name}.schema_version set db_name = $1`, [store.database])
      // The tool adds what is missing, also after a run that was interrupted. After a step back, what the newer version has made stays.
      if (found !== version) {
        const isStepBack = found !== undefined && minorOf(version) < minorOf(found)
        for (const name of isStepBack ? [] : names) {
          await runTool(name, 'setup-schema', '--version', '0.0')
          await runTool(name, 'update-schema', '--schema-name', schemas[name])
        }
        await narrowIndexes(client)
        await client.query(`comment on schema temporal is 'Temporal ${version}'`)
      }
      return version
    },
    signal,
  )
}
