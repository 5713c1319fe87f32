import ssh2 from 'ssh2'
import { z } from 'zod'
import { hostName, plainText, tcpPort } from './fields.ts'

export const sftpConfig = z.strictObject({
  host: hostName.describe('Host name or address'),
  port: tcpPort.default(22).describe('TCP port'),
  directory: plainText(1_024)
    .default('.')
    .describe(
      'Folder that documents are put under; it must exist, folders below it are made as needed. A relative one begins where the account is put after login',
    ),
  host_key_sha256: z
    .string()
    .regex(/^((SHA256:)?[A-Za-z0-9+/]{43}=?|[0-9a-fA-F]{64}|([0-9a-fA-F]{2}:){31}[0-9a-fA-F]{2})$/, 'is no SHA-256 fingerprint')
    .optional()
    .describe(
      'Fingerprint of the host key, as `ssh-keygen -lf` prints it (SHA256:...) or in hex. Without it any key is taken, so that anyone on the way could pose as the server: set it',
    ),
})

export const sftpCredentials = z
  .strictObject({
    username: z.string().min(1).max(255).describe('Account'),
    password: z
      .string()
      .min(1)
      .max(1_024)
      .meta({ secret: true })
      .optional()
      .describe('Its password, where it has no key; also given where the server asks for it in a dialogue (keyboard-interactive)'),
    private_key: z.string().min(1).max(20_000).meta({ secret: true }).optional().describe('In OpenSSH or PEM form'),
    passphrase: z.string().min(1).max(1_024).meta({ secret: true }).optional().describe('Opens the private key'),
  })
  .superRefine(({ password, private_key: key, passphrase }, context) => {
    if ((password === undefined) === (key === undefined)) {
      context.addIssue({ code: 'custom', message: 'need either password or private_key' })
    }
    if (key === undefined && passphrase !== undefined) {
      context.addIssue({ code: 'custom', path: ['passphrase'], message: 'goes with a private_key' })
    }
    // the message of the parser is not passed on: it may quote what it could not read
    if (key !== undefined && ssh2.utils.parseKey(key, passphrase) instanceof Error) {
      context.addIssue({
        code: 'custom',
        path: ['private_key'],
        message: 'cannot be read: not a private key, or the passphrase is not its own',
      })
    }
  })

export type SftpConfig = z.output<typeof sftpConfig>
export type SftpCredentials = z.output<typeof sftpCredentials>
