// Second floor of `relay`: the same documents through a plain queue on PostgreSQL, without a workflow engine. One transaction for the content,
// the document and a job for each destination, before the answer 201; one POST for each job, and one recorded attempt. It has no retries of its
// own, no captures, no state that an operator could see.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { makeWorkerUtils, run } from 'graphile-worker'
import { Pool } from 'pg'
import { Agent, request as sendRequest } from 'undici'
import { readConfig } from '../../src/config/config.ts'

interface Job {
  documentId: string
}

const concurrency = 16
const { DATABASE_URL: connectionString, DATABASE_POOL_MAX_CONNECTIONS: max } = readConfig()
const target = process.env['TARGET_URL']!
const pool = new Pool({ connectionString, max })
await pool.query(`
  create table if not exists bench_queue_contents (id bigint primary key generated always as identity, data bytea not null);
  create table if not exists bench_queue_documents (
    id bigint primary key generated always as identity, doc_id text not null unique, content_id bigint not null, open_jobs integer not null
  );
  create table if not exists bench_queue_attempts (
    id bigint primary key generated always as identity, document_id bigint not null, status integer not null, ended_at timestamptz not null default now()
  )`)
const utils = await makeWorkerUtils({ pgPool: pool })
await utils.migrate()

const accept = async (docId: string, destinations: number, data: Buffer): Promise<void> => {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const inserted = await client.query<{ id: string }>({
      name: 'document',
      text: `with content as (insert into bench_queue_contents (data) values ($1) returning id)
        insert into bench_queue_documents (doc_id, content_id, open_jobs) select $2, id, $3 from content returning id`,
      values: [data, docId, destinations],
    })
    await client.query({
      name: 'jobs',
      text: `select graphile_worker.add_job('deliver', json_build_object('documentId', $1::text)) from generate_series(1, $2::integer)`,
      values: [inserted.rows[0]!.id, destinations],
    })
    await client.query('commit')
  } catch (thrown) {
    await client.query('rollback')
    throw thrown
  } finally {
    client.release()
  }
}

const agent = new Agent({ connections: concurrency })
const deliver = async (payload: unknown): Promise<void> => {
  const { documentId } = payload as Job
  const found = await pool.query<{ data: Buffer }>({
    name: 'content',
    text: 'select c.data from bench_queue_documents d join bench_queue_contents c on c.id = d.content_id where d.id = $1',
    values: [documentId],
  })
  const answer = await sendRequest(target, { method: 'POST', body: found.rows[0]!.data, dispatcher: agent })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`the target answered ${answer.statusCode}`)
  await pool.query({
    name: 'attempt',
    text: `with attempt as (insert into bench_queue_attempts (document_id, status) values ($1, $2))
      update bench_queue_documents set open_jobs = open_jobs - 1 where id = $1`,
    values: [documentId, answer.statusCode],
  })
}

const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const query = new URL(request.url ?? '', 'http://queue').searchParams
  if (request.method === 'GET') {
    const { rows } = await pool.query<{ open: number }>('select count(*)::integer as open from bench_queue_documents where open_jobs > 0')
    response.end(String(rows[0]!.open))
    return
  }
  await accept(query.get('docId')!, Number(query.get('destinations')), await buffer(request))
  response.writeHead(201).end()
}

const runner = await run({ pgPool: pool, concurrency, noHandleSignals: true, taskList: { deliver } })
const server = createServer((request, response) => void serve(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => void runner.stop().finally(() => process.exit()))
process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
await runner.promise
