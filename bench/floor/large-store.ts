// Floor of `large`: a plain web server that hashes the body of a PUT while it writes it, in rows of 256 KiB, as one object or as a file
// that is synced, and sends it back for a GET. It knows nothing of documents, limits or captures. FLOOR_STORE is the store.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { GetObjectCommand } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { Pool } from 'pg'
import { readConfig } from '../../src/config/config.ts'
import { openS3 } from '../../src/content/s3.ts'

const rowBytes = 256 * 1024
const rowsPerInsert = 4
const rowsPerSelect = 8

interface Store {
  write(id: string, source: Readable): Promise<void>
  read(id: string): Promise<Readable>
}

const config = readConfig()

const openPostgres = async (): Promise<Store> => {
  const pool = new Pool({ connectionString: config.DATABASE_URL })
  await pool.query('create table if not exists bench_rows (id text, seq integer, data bytea not null, primary key (id, seq))')
  await pool.query('alter table bench_rows alter column data set storage external')
  async function* rows(id: string) {
    for (let seq = 0; ; seq += rowsPerSelect) {
      const text = 'select data from bench_rows where id = $1 and seq between $2 and $3 order by seq'
      const result = await pool.query<{ data: Buffer }>({ name: 'select', text, values: [id, seq, seq + rowsPerSelect - 1] })
      for (const { data } of result.rows) yield data
      if (result.rows.length < rowsPerSelect) return
    }
  }
  return {
    write: async (id, source) => {
      let waiting: Buffer[] = []
      let waitingBytes = 0
      let seq = 0
      const insert = async () => {
        const bytes = Buffer.concat(waiting)
        const values: unknown[] = [id]
        for (let from = 0; from < bytes.length; from += rowBytes) values.push(seq++, bytes.subarray(from, from + rowBytes))
        const text = `insert into bench_rows (id, seq, data) values ${values
          .slice(1)
          .flatMap((_, index) => (index % 2 === 0 ? [`($1, $${index + 2}, $${index + 3})`] : []))
          .join(', ')}`
        await pool.query({ name: `insert ${values.length}`, text, values })
        waiting = []
        waitingBytes = 0
      }
      for await (const chunk of source as AsyncIterable<Buffer>) {
        // Rows have the same size whatever the chunks of the network are.
        for (let from = 0; from < chunk.length;) {
          const part = chunk.subarray(from, from + rowBytes * rowsPerInsert - waitingBytes)
          waiting.push(part)
          waitingBytes += part.length
          from += part.length
          if (waitingBytes === rowBytes * rowsPerInsert) await insert()
        }
      }
      if (waitingBytes > 0) await insert()
    },
    read: async (id) => Readable.from(rows(id), { objectMode: false }),
  }
}

const openBucket = async (): Promise<Store> => {
  const Bucket = config.CONTENT_S3_BUCKET!
  const client = openS3({ ...config, CONTENT_S3_BUCKET: Bucket })
  return {
    write: async (id, source) => {
      await new Upload({ client, params: { Bucket, Key: id, Body: source } }).done()
    },
    read: async (id) => (await client.send(new GetObjectCommand({ Bucket, Key: id }))).Body as Readable,
  }
}

const openFiles = async (): Promise<Store> => {
  const directory = await mkdtemp(join(tmpdir(), 'floor-'))
  process.once('exit', () => rmSync(directory, { recursive: true }))
  const pathOf = (id: string) => join(directory, encodeURIComponent(id))
  return {
    write: (id, source) => writeFile(pathOf(id), source, { flush: true }),
    read: async (id) => createReadStream(pathOf(id)),
  }
}

const stores = { postgres: openPostgres, s3: openBucket, files: openFiles }
const store = await stores[process.env['FLOOR_STORE'] as keyof typeof stores]()

const hashed = (source: Readable) => {
  const hash = createHash('sha256')
  const through = new Transform({
    transform: (chunk: Buffer, _, done) => {
      hash.update(chunk)
      done(null, chunk)
    },
  })
  return { source: source.pipe(through), digest: () => hash.digest('hex') }
}

const serve = async (request: IncomingMessage, response: ServerResponse) => {
  const id = `floor${request.url}`
  if (request.method === 'PUT') {
    const { source, digest } = hashed(request)
    await store.write(id, source)
    response.writeHead(201, { 'x-sha256': digest() }).end()
  } else await pipeline(await store.read(id), response.writeHead(200))
}

const server = createServer((request, response) => void serve(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
process.on('disconnect', () => process.exit())
process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, pid: process.pid })
