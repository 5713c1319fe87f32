import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { whileNoOtherPrepares } from '../../src/temporal-server/ownership.ts'
import { prepareSchemas } from '../../src/temporal-server/schemas.ts'
import { configOf } from '../dev/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { createFolder } from '../support/folder.ts'

// The tool of Temporal itself prepares the schemas in one-machine.release.test.ts.

/** Creates a database, and a stand-in for temporal-sql-tool that notes its calls, and may fail. */
const prepare = async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), createFolder()])
  const calls = join(folder.path, 'calls')
  const sqlTool = join(folder.path, 'temporal-sql-tool')
  const fails = join(folder.path, 'fails')
  await writeFile(calls, '')
  const script = `#!/bin/sh\necho "$SQL_CONNECT_ATTRIBUTES $*" | sed 's/.*search_path=//' >> '${calls}'\ncase "$*" in *$(cat '${fails}' 2>/dev/null || echo nothing)*) echo broken; exit 1;; esac\n`
  await writeFile(sqlTool, script, { mode: 0o755 })
  return {
    db: database.db,
    url: database.url,
    run: (version: string, signal?: AbortSignal) =>
      prepareSchemas(configOf({ DATABASE_URL: database.url }), { server: '', sqlTool, version }, signal),
    fail: (words: string) => writeFile(fails, words),
    calls: async () => (await readFile(calls, 'utf8')).trim().split('\n').filter(Boolean),
    createTables: async () => {
      for (const schema of ['temporal', 'temporal_visibility'])
        await database.db.raw('create table ??.schema_version (db_name text)', [schema])
    },
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const all = [
  'temporal setup-schema --version 0.0',
  'temporal update-schema --schema-name postgresql/v12/temporal',
  'temporal_visibility setup-schema --version 0.0',
  'temporal_visibility update-schema --schema-name postgresql/v12/visibility',
]

test('schemas are made once, by one of two processes, and again after a run that was broken off', async () => {
  await using scene = await prepare()
  await scene.fail('visibility')
  await expect(scene.run('1.31.2')).rejects.toThrow('temporal-sql-tool failed (exit code 1): broken')
  await scene.fail('nothing')
  await scene.createTables()
  expect(await Promise.all([scene.run('1.31.2'), scene.run('1.31.2')])).toEqual(['1.31.2', '1.31.2'])
  expect((await scene.calls()).slice(-4)).toEqual(all)
  expect(await scene.calls()).toHaveLength(4 + 4)
})

test('a process that is stopped while another one prepares them ends', async () => {
  await using scene = await prepare()
  const stop = new AbortController()
  await whileNoOtherPrepares({ DATABASE_URL: scene.url }, async () => {
    const waiting = scene.run('1.31.2', stop.signal)
    stop.abort(new Error('Stopped by SIGTERM.'))
    await expect(waiting).rejects.toThrow('Stopped by SIGTERM.')
  })
  expect(await scene.calls()).toEqual([])
})

test('a later version updates them, one that skips a minor version is refused, and a step back leaves them', async () => {
  await using scene = await prepare()
  await scene.run('1.31.2')
  await scene.createTables()
  await scene.run('1.32.0')
  expect(await scene.calls()).toEqual([...all, ...all])
  await expect(scene.run('1.34.1')).rejects.toThrow(
    'Temporal 1.32.0 has written this database, and this relay brings 1.34.1. Temporal takes every minor version in turn',
  )
  await scene.run('1.31.2')
  expect(await scene.calls()).toHaveLength(8)
})

test('a schema temporal of somebody else is left alone', async () => {
  await using scene = await prepare()
  await scene.db.raw('create schema temporal')
  await expect(scene.run('1.31.2')).rejects.toThrow('The database has a schema temporal that this relay has not made')
  expect(await scene.calls()).toEqual([])
})

test('an index of a search attribute holds the workflows that have it, keeps its name, and finds a value', async () => {
  await using scene = await prepare()
  const { db } = scene
  await scene.fail('visibility')
  await expect(scene.run('1.31.2')).rejects.toThrow('broken')
  await scene.fail('nothing')
  await scene.createTables()
  await db.raw(`create table temporal_visibility.executions_visibility (namespace_id text, run_id text, status int, search_attributes jsonb,
    Bool01 bool generated always as ((search_attributes->'Bool01')::bool) stored,
    Keyword01 text generated always as (search_attributes->>'Keyword01') stored)`)
  const createIndex = (name: string, column: string) =>
    db.raw(`create index ${name} on temporal_visibility.executions_visibility (namespace_id, ${column}, run_id)`)
  await createIndex('by_status', 'status')
  await createIndex('by_keyword_01', 'Keyword01')
  await scene.run('1.31.2')
  await createIndex('by_bool_01', 'Bool01')
  await scene.run('1.32.0')

  const indexes = await db('pg_indexes').where({ schemaname: 'temporal_visibility' }).orderBy('indexname').select('indexname', 'indexdef')
  expect(indexes.map(({ indexname, indexdef }) => [indexname, / WHERE (.*)$/.exec(indexdef)?.[1]])).toEqual([
    ['by_bool_01', '(bool01 IS NOT NULL)'],
    ['by_keyword_01', '(keyword01 IS NOT NULL)'],
    ['by_status', undefined],
  ])
  const plan = await db.transaction(async (trx) => {
    await trx.raw('set local enable_seqscan = off')
    return trx.raw<{ rows: unknown[] }>(
      `explain select * from temporal_visibility.executions_visibility where namespace_id = 'N' and Keyword01 = 'acme/invoices'`,
    )
  })
  expect(JSON.stringify(plan.rows)).toContain('by_keyword_01')
})
