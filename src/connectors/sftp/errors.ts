import ssh2 from 'ssh2'
import { messageOf } from '../../base/errors.ts'
import { DeliveryError } from '../connector.ts'
import { toDeliveryError } from '../shared/errors.ts'

/** Returns the status code of an SFTP reply. */
export const sftpStatusOf = (thrown: unknown) => (thrown as { code?: unknown }).code

/** Maps an error of an open SFTP session. */
export const sftpError = (thrown: unknown): DeliveryError => {
  if (sftpStatusOf(thrown) === ssh2.utils.sftp.STATUS_CODE.PERMISSION_DENIED) {
    return new DeliveryError(
      'permission_denied',
      'the account has no permission to write; it must be allowed to create, rename and delete files',
      { cause: thrown },
    )
  }
  return toDeliveryError(thrown, 'sftp_failure')
}

/** Maps an error that occurred before the session was open. */
export const sessionError = (thrown: unknown): DeliveryError => {
  const level = (thrown as { level?: string }).level
  if (level === 'client-authentication') {
    return new DeliveryError('credentials_refused', 'the server refused the user name or the password or key', {
      permanent: true,
      cause: thrown,
    })
  }
  if (level === 'client-timeout') return new DeliveryError('timeout', 'the SSH handshake did not finish in time', { cause: thrown })
  if (messageOf(thrown) === 'Connection lost before handshake') {
    return new DeliveryError(
      'connection_failed',
      'the server closed the connection before the SSH handshake; check that host and port are those of an SSH server and that it accepts further connections',
      { cause: thrown },
    )
  }
  return toDeliveryError(thrown, level === 'handshake' ? 'handshake_failed' : 'connection_failed')
}

export const hostKeyMismatch = (actual: string) =>
  new DeliveryError(
    'host_key_mismatch',
    `the server presented the host key ${actual}, which differs from host_key_sha256; the relay did not sign in`,
  )
