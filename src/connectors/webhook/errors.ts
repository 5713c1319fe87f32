import { STATUS_CODES } from 'node:http'
import { DeliveryError, type TargetAnswer } from '../connector.ts'
import { isPermanentStatus, retryAfterMs } from '../shared/http.ts'

/** Maps a response that is no success. */
export const webhookError = (
  { statusCode, headers }: { statusCode: number; headers: Record<string, string | string[] | undefined> },
  answer: TargetAnswer,
): DeliveryError => {
  const status = `the target answered ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`.trimEnd()
  if (statusCode >= 300 && statusCode < 400) {
    const location = typeof headers.location === 'string' && URL.canParse(headers.location) ? ` to ${withoutQuery(headers.location)}` : ''
    return new DeliveryError(`http_${statusCode}`, `${status}, a redirect${location}, which the relay does not follow; correct url`, {
      permanent: false,
      answer,
    })
  }
  if (statusCode === 401) {
    return new DeliveryError('credentials_refused', `${status}: it refuses the credentials of the destination`, { permanent: true, answer })
  }
  return new DeliveryError(`http_${statusCode}`, status, {
    permanent: isPermanentStatus(statusCode),
    retryAfterMs: retryAfterMs(headers['retry-after'], new Date()),
    answer,
  })
}

/** Returns an address without its query, which may contain a key. */
const withoutQuery = (url: string) => {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
