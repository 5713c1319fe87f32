import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createVerifier, httpbis } from 'http-message-signatures'

const secret = process.env.WEBHOOK_SECRET
const folder = process.env.FOLDER
const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret)
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')
const keyId = sha256(key).slice(0, 16)
const verifier = { id: keyId, algs: ['hmac-sha256'], verify: createVerifier(key, 'hmac-sha256') }
const seen = new Set() // in a database

const isSigned = ({ method, headers, url }) =>
  httpbis.verifyMessage(
    {
      keyLookup: async ({ keyid }) => (keyid === keyId ? verifier : undefined),
      requiredFields: ['@method', 'content-digest', 'webhook-id'],
      requiredParams: ['created'],
      // Five minutes: the library adds the tolerance to the age.
      tolerance: 300,
      maxAge: 600,
    },
    { method, headers, url: `http://receiver${url}` },
  )

/** Stores the body, unless it was seen before. Nothing remains of a body that does not have its digest. */
const store = async (request) => {
  const id = request.headers['webhook-id']
  const hash = createHash('sha256')
  const part = join(folder, `${randomUUID()}.part`)
  const hashed = async function* (chunks) {
    for await (const chunk of chunks) {
      hash.update(chunk)
      yield chunk
    }
  }
  try {
    await pipeline(request, hashed, createWriteStream(part))
    if (request.headers['content-digest'] !== `sha-256=:${hash.digest('base64')}:`) return 400
    if (!seen.has(id)) await rename(part, join(folder, sha256(id)))
    seen.add(id)
    return 204
  } finally {
    await rm(part, { force: true })
  }
}

const statusOf = async (request) => ((await isSigned(request).catch(() => false)) ? store(request) : 401)

const answer = async (request, response) => response.writeHead(await statusOf(request).catch(() => 500)).end()

createServer((request, response) => void answer(request, response)).listen(Number(process.env.PORT), () => console.log('ready'))
