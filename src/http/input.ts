import { parse, type ParsedUrlQuery } from 'node:querystring'
import type { Context } from 'koa'
import { AppError } from '../base/errors.ts'
import { isStorable } from '../base/text.ts'

const tooLarge = (maxBytes: number) => new AppError('payload_too_large', `The body exceeds the limit of ${maxBytes} bytes.`)

/** Reads a body up to a limit. @throws AppError 400 if the body ends early, 413 if it is too large */
export const readBytes = async (context: Context, maxBytes: number): Promise<Buffer> => {
  // Refuse by Content-Length before reading anything.
  if ((context.request.length ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const chunks: Buffer[] = []
  let sizeBytes = 0
  // Keep the socket open when leaving the loop early: the refusal has to be sent on it.
  try {
    for await (const chunk of context.req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      if (sizeBytes > maxBytes) throw tooLarge(maxBytes)
      chunks.push(chunk)
    }
  } catch (thrown) {
    // The client disconnected. Its ECONNRESET must not be mistaken for one of a dependency.
    throw thrown instanceof AppError ? thrown : new AppError('invalid_request', 'The body ended early.', { cause: thrown })
  }
  return Buffer.concat(chunks, sizeBytes)
}

const refuseUnstorable = (key: string, value: unknown) => {
  if (!isStorable(key) || (typeof value === 'string' && !isStorable(value)))
    throw new AppError('invalid_request', 'The body contains a NUL character or an unpaired surrogate.')
  return value
}

// Limit of a JSON body.
export const maxJsonBytes = 1_024 * 1_024
// Keys and values of a JSON body, including those of nested arrays and objects.
const maxJsonValues = 5_000

/** Reads the JSON body of a request. @throws AppError 400, 413 or 415 */
export const readJson = async (context: Context): Promise<unknown> => {
  checkIsJson(context)
  const bytes = await readBytes(context, maxJsonBytes)
  checkValues(bytes, maxJsonValues)
  return parseJson(bytes)
}

/** Checks the number of keys and values of a JSON body, before it is parsed. @throws AppError 413 */
export const checkValues = (bytes: Buffer, maxValues: number): void => {
  if (hasMoreValues(bytes, maxValues)) throw new AppError('payload_too_large', `The body may contain at most ${maxValues} keys and values.`)
}

const [quote, backslash] = [0x22, 0x5c]
// Each of them precedes a key or a value.
const separators = Uint8Array.from({ length: 256 }, (_, byte) => Number('[{:,'.includes(String.fromCodePoint(byte))))

/** Returns true if JSON contains more keys and values than this. Parsing and checking them would take 100 times as long. */
const hasMoreValues = (bytes: Buffer, maxValues: number): boolean => {
  let values = 1
  for (let at = 0; at < bytes.length && values <= maxValues; at += 1) {
    if (separators[bytes[at]!] === 1) values += 1
    else if (bytes[at] === quote) at = endOfText(bytes, at)
  }
  return values > maxValues
}

/** Returns the position of the closing quote of the text that begins at `start`. */
const endOfText = (bytes: Buffer, start: number): number => {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

/** Checks the headers of a request with a JSON body. @throws AppError 400 if it is empty, 415 if it is not JSON */
export const checkIsJson = (context: Context): void => {
  if (context.request.length === 0) throw new AppError('invalid_request', 'This request requires a JSON body.')
  if (context.is('application/json') === false || !['', 'identity'].includes(context.get('content-encoding'))) {
    throw new AppError('unsupported_media_type', 'Send the body with Content-Type: application/json and without a content encoding.')
  }
}

/** Parses a JSON body. @throws AppError 400 if it is not JSON in UTF-8 or contains text that cannot be stored */
export const parseJson = (bytes: Uint8Array): unknown => {
  if (bytes.length === 0) throw new AppError('invalid_request', 'This request requires a JSON body.')
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes), refuseUnstorable)
  } catch (thrown) {
    if (thrown instanceof AppError) throw thrown
    // The parser and the check of its values call themselves for each level.
    if (thrown instanceof RangeError) throw new AppError('invalid_request', 'The body is nested too deeply.', { cause: thrown })
    throw new AppError('invalid_request', 'The body is not valid JSON in UTF-8.', { cause: thrown })
  }
}

/** Parses the query string. The time that Koa's own `context.query` takes grows with the square of the number of parameters. */
export const queryOf = ({ querystring }: Pick<Context, 'querystring'>): ParsedUrlQuery =>
  parse(querystring, undefined, undefined, { maxKeys: 0 })

/**
 * Returns the address at which the client reaches the relay, without a slash at its end.
 * @param baseUrl RELAY_BASE_URL, if it differs from the host that the client names
 */
export const relayUrlOf = ({ protocol, host }: Pick<Context, 'protocol' | 'host'>, baseUrl: string | undefined): string =>
  (baseUrl ?? `${protocol}://${host}`).replace(/\/+$/, '')
