import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Authority {
  /** As PEM. */
  certificate: string
  /** Returns key and certificate of a server, signed by this authority. */
  issue(subjectAltName: string, validity?: string[]): Promise<{ key: string; cert: string }>
  remove(): Promise<void>
}

/** Creates a certificate authority that no system trusts by default. */
export const createAuthority = async (): Promise<Authority> => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-ca-'))
  const openssl = (...command: string[]) => run('openssl', command, { cwd: folder })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Relay test authority')
  return {
    certificate: await readFile(join(folder, 'ca.pem'), 'utf8'),
    issue: async (subjectAltName, validity = ['-days', '1']) => {
      await openssl('req', ...newKey, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=target')
      await writeFile(join(folder, 'extensions'), `subjectAltName=${subjectAltName}\n`)
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'extensions', ...validity]
      await openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.pem', ...signed)
      return { key: await readFile(join(folder, 'server.key'), 'utf8'), cert: await readFile(join(folder, 'server.pem'), 'utf8') }
    },
    remove: () => rm(folder, { recursive: true }),
  }
}
