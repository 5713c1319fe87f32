import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createWebhook } from '../../src/connectors/webhook/index.ts'
import { findFreePort } from '../../src/programs/ports.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, failure, largePayload, later, MiB, payloadOf } from '../connectors/payloads.ts'
import { startHttpTarget } from '../support/http-target.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Starts a receiver that docs/connectors/webhook.md names. */
const startReceiver = async (language: 'js' | 'java', secret: string) => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-receiver-'))
  const documents = await mkdtemp(join(folder, 'documents-'))
  const program = { js: 'receiver.mjs', java: 'Receiver.java' }[language]
  const file = join(folder, program)
  await copyFile(join(root, 'docs/examples', program), file)
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const port = await findFreePort()
  const child = spawn(language === 'js' ? process.execPath : process.env['TEST_JAVA_BIN']!, [file], {
    env: { PATH: process.env.PATH, PORT: String(port), WEBHOOK_SECRET: secret, FOLDER: documents },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const [line] = (await Promise.race([once(createInterface(child.stdout), 'line'), exited])) as unknown[]
  if (line !== 'ready') throw new Error(`the receiver ended with ${String(line)}`)
  return {
    port,
    url: `http://127.0.0.1:${port}/documents?from=relay`,
    /** The digests of the documents that it has stored, and the names of other files. */
    stored: async () => {
      const names = await readdir(documents)
      const found = names.map(async (name) => (name.endsWith('.part') ? name : sha256Of(await readFile(join(documents, name)))))
      return (await Promise.all(found)).toSorted()
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true })
    },
  }
}

const sha256Of = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())
const webhook = createWebhook()
const secret = `whsec_${randomBytes(32).toString('base64')}`
const target = (url: string, config: object = {}, credentials: object = { secret }) => ({
  config: webhook.config.parse({ url, ...config }),
  credentials: webhook.credentials.parse(credentials),
})

const signedRequest = async (bytes: Buffer, minutes = 0) => {
  const payload = payloadOf(bytes)
  const server = await startHttpTarget()
  await later(minutes, () => webhook.deliver(payload, target(`${server.origin}/documents`), contextOf(outbound)))
  await server.stop()
  return server.arrivals[0]!
}

const post = async (port: number, headers: http.IncomingHttpHeaders, body: Buffer): Promise<number> => {
  const request = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/documents', headers }).end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  response.resume()
  return response.statusCode!
}

describe.each(['js', 'java'] as const)('the receiver of docs/connectors/webhook.md in %s', (language) => {
  test('stores every document once, whatever its form, and answers a ping', async () => {
    await using receiver = await startReceiver(language, secret)
    const payload = payloadOf(randomBytes(100_000), { docId: 'Ä 1%', contentType: 'application/octet-stream ' })
    const large = largePayload(20 * MiB)
    for (const config of [{}, { signatures: 'http_message' }, { signatures: 'both', method: 'PUT' }]) {
      for (const each of [payload, large]) await webhook.deliver(each, target(receiver.url, config), contextOf(outbound))
    }
    expect(await receiver.stored()).toEqual([payload.sha256, large.sha256].toSorted())

    for (const format of ['json', 'multipart']) {
      await webhook.deliver(payloadOf(randomBytes(1_000)), target(receiver.url, { format }), contextOf(outbound))
    }
    expect(await webhook.probe(target(receiver.url), contextOf(outbound))).toContain('204')
    expect(await receiver.stored()).toHaveLength(5)
  })

  test('accepts the old secret while it is changed', async () => {
    await using receiver = await startReceiver(language, 'plain words')
    const payload = payloadOf(randomBytes(1_000))
    await webhook.deliver(payload, target(receiver.url, {}, { secret, previous_secret: 'plain words' }), contextOf(outbound))
    expect(await receiver.stored()).toEqual([payload.sha256])
  })

  test('stores nothing that the relay has not signed, that was altered on the way, or that was signed at another time', async () => {
    await using receiver = await startReceiver(language, secret)
    for (const [config, credentials] of [
      [{}, {}],
      [{}, { secret: 'another' }],
      [{ signatures: 'standard_webhooks' }, { secret }],
    ]) {
      const error = await failure(
        webhook.deliver(payloadOf(Buffer.from('x')), target(receiver.url, config, credentials), contextOf(outbound)),
      )
      expect(error).toMatchObject({ code: 'credentials_refused', answer: { status: 401 } })
    }

    const { headers, body } = await signedRequest(Buffer.from('the document'))
    expect(await post(receiver.port, headers, Buffer.from('the document'.toUpperCase()))).toBe(400)
    const digest = `sha-256=:${createHash('sha256').update('THE DOCUMENT').digest('base64')}:`
    expect(await post(receiver.port, { ...headers, 'content-digest': digest }, Buffer.from('THE DOCUMENT'))).toBe(401)
    for (const name of ['webhook-id', 'content-type', 'x-relay-doc-id']) {
      expect([name, await post(receiver.port, { ...headers, [name]: 'another' }, body)]).toEqual([name, 401])
    }
    const input = String(headers['signature-input'])
    const forged = [
      input.replace('"content-digest" ', ''),
      input.replace(/created=(\d+)/, (_, created: string) => `created=${Number(created) - 1}`),
      input.replace(/keyid="[^"]+"/, 'keyid="0000000000000000"'),
    ]
    for (const each of forged) expect([each, await post(receiver.port, { ...headers, 'signature-input': each }, body)]).toEqual([each, 401])
    for (const minutes of [-6, 6]) {
      const old = await signedRequest(Buffer.from('x'), minutes)
      expect([minutes, await post(receiver.port, old.headers, old.body)]).toEqual([minutes, 401])
    }
    expect(await receiver.stored()).toEqual([])
    expect(await post(receiver.port, headers, body)).toBe(204)
  })
})
