import { messageOf } from '../../base/errors.ts'
import { DeliveryError } from '../connector.ts'
import { isPermanent, type FixedErrorCode } from '../error-codes.ts'
import type { FinalAnswer } from '../shared/final-answers.ts'
import { noteOperation } from '../shared/operation.ts'

const systemErrors: Record<string, { code: FixedErrorCode; message: string }> = {
  EACCES: { code: 'permission_denied', message: "the worker's account has no permission to write" },
  EPERM: { code: 'permission_denied', message: "the worker's account has no permission to write" },
  ENOSPC: { code: 'storage_full', message: 'the file system is full' },
  EDQUOT: { code: 'storage_full', message: 'the quota of the file system is used up' },
  ENAMETOOLONG: { code: 'path_too_long', message: 'the path is longer than the file system accepts' },
}

/** What a file system says that no time changes. */
export const directoryFinalAnswers: readonly FinalAnswer[] = Object.entries(systemErrors)
  .filter(([, { code }]) => isPermanent(code))
  .map(([answer, { message }]) => ({ answer: `\`${answer}\``, meaning: message }))

export const systemCodeOf = (thrown: unknown) => (thrown as { code?: unknown }).code

/** Maps an error of a file system call. Retries everything that is not certainly permanent. */
export const fileSystemError = (thrown: unknown): DeliveryError => {
  if (thrown instanceof DeliveryError) return thrown
  const { code, message } = systemErrors[String(systemCodeOf(thrown))] ?? { code: 'file_system_failure', message: undefined }
  // Node names the call and the path behind the word of the system.
  const { syscall, path } = thrown as NodeJS.ErrnoException
  if (syscall !== undefined && path !== undefined) noteOperation(thrown, `${syscall} of ${path}`)
  const [said = ''] = messageOf(thrown).split(`, ${syscall} '`, 1)
  return new DeliveryError(code, message ? `${message} (${said})` : said, { cause: thrown })
}
