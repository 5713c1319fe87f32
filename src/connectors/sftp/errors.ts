import ssh2 from 'ssh2'
import { messageOf } from '../../base/errors.ts'
import { DeliveryError } from '../connector.ts'
import { toDeliveryError } from '../shared/errors.ts'
import { saysFull, saysThatItPasses } from '../shared/passing-words.ts'

const { STATUS_CODE } = ssh2.utils.sftp

export const sftpStatusOf = (thrown: unknown) => (thrown as { code?: unknown }).code

// Statuses of later drafts of the protocol, which ssh2 calls unknown.
const laterStatuses: Readonly<Record<number, string>> = {
  9: 'Invalid handle',
  10: 'No such path',
  11: 'File already exists',
  12: 'Write protected',
  13: 'No medium',
  14: 'No space on the file system',
  15: 'Quota exceeded',
  16: 'Unknown user or group',
  17: 'Locked by another program',
  18: 'Folder is not empty',
  19: 'Not a folder',
  20: 'Invalid file name',
  21: 'Too many links',
  22: 'Cannot be deleted',
  23: 'Invalid parameter',
  24: 'Is a folder',
}

/** Returns an error of a server with its status behind its word. */
export const withStatus = (error: Error): Error => {
  const status = sftpStatusOf(error)
  if (typeof status !== 'number') return error
  const later = laterStatuses[status]
  const word = later !== undefined && /^(unknown\b.*)?$/i.test(error.message) ? later : error.message
  return Object.assign(new Error(`${word} (${status})`, { cause: error }), { code: status })
}

/** Returns `true` if the server says that there is nothing at the path. */
export const isAbsent = (thrown: unknown) => sftpStatusOf(thrown) === STATUS_CODE.NO_SUCH_FILE || sftpStatusOf(thrown) === 10

/** Maps an error of an open SFTP session. */
export const sftpError = (thrown: unknown): DeliveryError => {
  const status = sftpStatusOf(thrown)
  const text = messageOf(thrown)
  if (typeof status === 'number' && saysFull.test(text)) return new DeliveryError('storage_full', text, { cause: thrown })
  // Servers on Windows say so of a file that another program has open.
  if (status === STATUS_CODE.PERMISSION_DENIED && !saysThatItPasses(text)) {
    return new DeliveryError(
      'permission_denied',
      `the account has no permission to write; it must be allowed to create, rename and delete files (${messageOf(thrown)})`,
      { cause: thrown },
    )
  }
  if (status === 14 || status === 15) return new DeliveryError('storage_full', messageOf(thrown), { cause: thrown })
  return toDeliveryError(thrown, 'sftp_failure')
}

/** What a server still demands after it has refused a sign-in or taken a part of it. */
export interface Demanded {
  left: string[]
  isPartial: boolean
}

const authenticationText = ({ left, isPartial }: Demanded) => {
  const methods = left.length === 0 ? '' : `; it accepts ${left.join(', ')}`
  if (!isPartial) return `the server refused the user name or the password or key${methods}`
  return `the server has accepted a part of the credentials, and refused the rest or demands more: ${left.join(', ')}`
}

/** Maps an error that occurred before the session was open. */
export const sessionError = (thrown: unknown, demanded: Demanded = { left: [], isPartial: false }): DeliveryError => {
  const level = (thrown as { level?: string }).level
  if (level === 'client-authentication') {
    return new DeliveryError('credentials_refused', authenticationText(demanded), { permanent: true, cause: thrown })
  }
  if (level === 'client-timeout') return new DeliveryError('timeout', 'the SSH handshake did not finish in time', { cause: thrown })
  if (messageOf(thrown) === 'Connection lost before handshake') {
    return new DeliveryError(
      'connection_failed',
      'the server closed the connection before the SSH handshake; check that host and port are those of an SSH server and that it accepts further connections',
      { cause: thrown },
    )
  }
  const error = toDeliveryError(thrown, level === 'handshake' ? 'handshake_failed' : 'connection_failed')
  if (!/no matching/.test(error.message)) return error
  return error.reworded(thrown, (message) => `${message}; a server that has old algorithms only needs algorithms: legacy`)
}

/** Returns `true` if a handshake has failed because the server has no host key of the types that it was asked for. */
export const isNoCommonHostKey = (thrown: unknown) => thrown instanceof DeliveryError && /no matching host key/i.test(thrown.message)

/** @param presented are the fingerprints of all host keys that the server has presented */
export const hostKeyMismatch = (presented: readonly string[]) =>
  new DeliveryError(
    'host_key_mismatch',
    `the server presented the host key ${presented.join(' and ')}, which differs from host_key_sha256; the relay did not sign in`,
  )

/** Maps an error of opening the SFTP channel, after the account has signed in. */
export const channelError = (thrown: unknown): DeliveryError => {
  const text = messageOf(thrown)
  const [, length] = /^Packet length (-?\d+) exceeds/.exec(text) ?? []
  if (length !== undefined) {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(Number(length) | 0)
    const beginning = bytes.toString('latin1')
    // The length may be that of a later packet, of which the text is a part.
    const shown = /^[\x20-\x7e]+$/.test(beginning) ? `, which begins with "${beginning}"` : ''
    return new DeliveryError(
      'sftp_unavailable',
      `the server sent text instead of SFTP${shown}: the shell or a login script of the account prints something; it must produce no output for sessions without a terminal (received message too long ${length})`,
      { cause: thrown },
    )
  }
  if (/subsystem|exit code|Received unexpected SFTP session termination|exit signal/i.test(text)) {
    return new DeliveryError(
      'sftp_unavailable',
      `the account signed in, and the server does not give it SFTP: subsystem request failed (${text})`,
      {
        cause: thrown,
      },
    )
  }
  return sessionError(thrown)
}
