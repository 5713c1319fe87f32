import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Runs a command of a shell in a folder. @returns its output, or that of its failure */
export const inShell = async (folder: string, command: string): Promise<{ ok: boolean; output: string }> =>
  run('bash', ['-c', command], { cwd: folder }).then(
    ({ stdout, stderr }) => ({ ok: true, output: stdout + stderr }),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ ok: false, output: stdout + stderr }),
  )

const configuration = `[ tsa ]
default_tsa = t
[ t ]
serial = ./serial
crypto_device = builtin
signer_cert = ./tsa.pem
signer_key = ./tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ordering = yes
tsa_name = yes
ess_cert_id_chain = no
`

/** Starts a time stamping authority made of OpenSSL. `answerWith` replaces its answers, `undefined` brings them back. */
export const startAuthority = async (folder: string) => {
  await mkdir(folder)
  await writeFile(join(folder, 'tsa.cnf'), configuration)
  await writeFile(join(folder, 'ext'), 'extendedKeyUsage=critical,timeStamping\n')
  const made = await inShell(
    folder,
    `echo 01 > serial && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 30 -subj /CN=TestCA &&
    openssl req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /CN=TestTSA &&
    openssl x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile ext -out tsa.pem`,
  )
  if (!made.ok) throw new Error(made.output)
  let other: ((query: Buffer) => { status: number; body: Buffer }) | undefined
  const reply = async (query: Buffer): Promise<Buffer> => {
    await writeFile(join(folder, 'query.tsq'), query)
    const { stdout } = await run('openssl', ['ts', '-reply', '-config', 'tsa.cnf', '-queryfile', 'query.tsq'], {
      cwd: folder,
      encoding: 'buffer',
    })
    return stdout
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const query = Buffer.concat(chunks)
      if (request.headers['content-type'] !== 'application/timestamp-query') response.writeHead(415).end()
      else if (other) {
        const { status, body } = other(query)
        response.writeHead(status).end(body)
      } else void reply(query).then((body) => response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(body))
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tsa`,
    certificate: join(folder, 'ca.pem'),
    reply,
    answerWith: (answer: typeof other) => {
      other = answer
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
