import { z } from 'zod'
import { fileNames, hostName, partFile, plainText, tcpPort } from '../shared/schema-fields.ts'
import { withSignIns, type SignIn } from '../shared/sign-in.ts'
import { readPrivateKey } from './private-key.ts'

export const sftpConfig = z.strictObject({
  host: hostName.describe('Host name or address'),
  port: tcpPort.default(22).describe('TCP port'),
  directory: plainText(1_024)
    .default('.')
    .describe(
      'Folder to store documents in; it must exist, folders below it are created. A relative path starts at the folder that the account has after login',
    ),
  file_names: fileNames,
  write: z
    .enum(['rename', 'in_place'])
    .default('rename')
    .describe(
      'How a file is written. rename: under a hidden name, then renamed; in_place: under its final name, for a server that takes a file when it is closed, or permits no rename. Programs that read the folder may then see a part of a document',
    ),
  part_file: partFile,
  algorithms: z
    .enum(['secure', 'legacy'])
    .default('secure')
    .describe(
      'Algorithms of SSH. legacy: also those that are broken or weak, which an attacker in the network may use to read and change everything, the password included: SHA-1 key exchange, CBC ciphers, MD5, DSA host keys. Only for a server that has no others',
    ),
  host_key_sha256: z
    .string()
    .regex(/^((SHA256:)?[A-Za-z0-9+/]{43}=?|[0-9a-fA-F]{64}|([0-9a-fA-F]{2}:){31}[0-9a-fA-F]{2})$/, 'must be a SHA-256 fingerprint')
    .optional()
    .describe(
      'Fingerprint of the host key, as `ssh-keygen -lf` prints it (SHA256:...) or in hex. Without it, the relay trusts the key that the server presents at the first success, and stores its fingerprint here',
    ),
})

type SignInKey = 'password' | 'private_key' | 'passphrase'

const signIns: SignIn<SignInKey>[] = [
  { name: 'password', required: ['password'] },
  { name: 'private_key', required: ['private_key'], optional: ['passphrase'] },
  { name: 'private_key_and_password', required: ['private_key', 'password'], optional: ['passphrase'] },
]

const accountCredentials = z
  .strictObject({
    username: z.string().min(1).max(255).describe('Account'),
    password: z
      .string()
      .min(1)
      .max(1_024)
      .meta({ secret: true })
      .optional()
      .describe(
        'Password of the account, if it has no key, or if the server demands both. Also used if the server asks for it interactively (keyboard-interactive)',
      ),
    private_key: z
      .string()
      .min(1)
      .max(20_000)
      .meta({ secret: true })
      .optional()
      .describe('Private key in OpenSSH or PEM form (PKCS#1, PKCS#8, SEC1)'),
    passphrase: z.string().min(1).max(1_024).meta({ secret: true }).optional().describe('Passphrase of the private key'),
  })
  .superRefine((values, context) => {
    const { password, private_key: key, passphrase } = values
    if (password === undefined && key === undefined) {
      context.addIssue({ code: 'custom', message: 'must contain password, private_key, or both if the server demands both' })
    }
    if (key === undefined && passphrase !== undefined)
      context.addIssue({ code: 'custom', path: ['passphrase'], message: 'needs private_key' })
    if (key === undefined) return
    const read = readPrivateKey(key, passphrase)
    if (typeof read === 'string') context.addIssue({ code: 'custom', path: ['private_key'], message: read })
  })

export const sftpCredentials = withSignIns(accountCredentials, signIns)

/** A plausible destination, for documentation. */
export const sftpExample = {
  config: {
    host: 'sftp.example.com',
    port: 22,
    directory: 'incoming/invoices',
    write: 'rename',
    algorithms: 'secure',
    host_key_sha256: 'SHA256:uNiVztksCsDhcc0u9e8BgrJXVGLmKgF3gg2VqVhF3mI',
  },
  credentials: { username: 'relay', password: 'correct-horse-battery-staple' },
}

export type SftpConfig = z.output<typeof sftpConfig>
export type SftpCredentials = z.output<typeof sftpCredentials>
