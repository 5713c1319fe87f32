// Floor of `accept` and `isolation`: a plain web server that commits the body of each PUT to PostgreSQL, as one transaction with synchronous
// commit, and then answers 201. It answers a GET with what was committed. It knows nothing of documents, destinations or captures.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Pool } from 'pg'
import { readConfig } from '../../src/config/config.ts'

const { DATABASE_URL: connectionString, DATABASE_POOL_MAX_CONNECTIONS: max } = readConfig()
const pool = new Pool({ connectionString, max })
await pool.query('create table if not exists bench_floor (id text primary key, data bytea not null)')

const receive = async (request: IncomingMessage, response: ServerResponse) => {
  const docId = new URL(request.url ?? '', 'http://floor').searchParams.get('docId')
  if (request.method === 'GET') {
    const { rows } = await pool.query<{ data: Buffer }>({
      name: 'read',
      text: 'select data from bench_floor where id = $1',
      values: [docId],
    })
    return response.end(rows[0]!.data)
  }
  const values = [docId, await buffer(request)]
  await pool.query({ name: 'insert', text: 'insert into bench_floor (id, data) values ($1, $2)', values })
  return response.writeHead(201).end()
}

const server = createServer((request, response) => void receive(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => process.exit())
process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
