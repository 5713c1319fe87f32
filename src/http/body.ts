import type { Context } from 'koa'
import { AppError } from '../errors.ts'

const tooLarge = (maxBytes: number) => new AppError('payload_too_large', `A body may have at most ${maxBytes} bytes.`)

/** A body up to its limit. @throws AppError 400 or 413 */
export const readBytes = async (context: Context, maxBytes: number): Promise<Buffer> => {
  // told beforehand: refused before a byte is read
  if ((context.request.length ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const chunks: Buffer[] = []
  let sizeBytes = 0
  // the socket stays open on an early end, or the refusal could not be sent
  try {
    for await (const chunk of context.req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      if (sizeBytes > maxBytes) throw tooLarge(maxBytes)
      chunks.push(chunk)
    }
  } catch (thrown) {
    // a client that hung up: its ECONNRESET would pass for that of a dependency
    throw thrown instanceof AppError ? thrown : new AppError('invalid_request', 'The body broke off.', { cause: thrown })
  }
  return Buffer.concat(chunks, sizeBytes)
}

/** Text that PostgreSQL can hold: no NUL, no half of a surrogate pair. */
export const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

const refuseUnstorable = (key: string, value: unknown) => {
  if (!isStorable(key) || (typeof value === 'string' && !isStorable(value))) throw new SyntaxError('text that cannot be stored')
  return value
}

/** The JSON body of a request. @throws AppError 400, 413 or 415 */
export const readJson = async (context: Context, maxBytes: number): Promise<unknown> => {
  checkIsJson(context)
  return parseJson(await readBytes(context, maxBytes))
}

/** @throws AppError 400 or 415 for a body that is announced as none, or as something else */
export const checkIsJson = (context: Context): void => {
  if (context.request.length === 0) throw new AppError('invalid_request', 'This needs a JSON body.')
  if (context.is('application/json') === false || !['', 'identity'].includes(context.get('content-encoding'))) {
    throw new AppError('unsupported_media_type', 'The body must be sent as Content-Type: application/json, without a content encoding.')
  }
}

/** @throws AppError 400 */
export const parseJson = (bytes: Buffer): unknown => {
  if (bytes.length === 0) throw new AppError('invalid_request', 'This needs a JSON body.')
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes), refuseUnstorable)
  } catch (thrown) {
    throw new AppError('invalid_request', 'The body is not well-formed JSON in UTF-8.', { cause: thrown })
  }
}
