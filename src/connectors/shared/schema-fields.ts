import { z } from 'zod'
import { hiddenPartFile } from './target-path.ts'

/** A line of text that is passed on to the target unchanged. */
export const plainText = (maxCharacters: number) =>
  z
    .string()
    .min(1)
    .max(maxCharacters)
    .regex(/^\P{Cc}+$/u, 'must not contain control characters')

export const hostName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\s/@]+$/, 'must be a host name or address, without user or path')

export const tcpPort = z.int().min(1).max(65_535)

/** The beginning of object names in a store that has no folders. */
export const keyPrefix = z
  .string()
  .max(512)
  .regex(/^([^/\p{Cc}]\P{Cc}*)?$/u, 'must not begin with a slash or contain control characters')
  .refine((prefix) => !prefix.split('/').some((segment) => segment === '.' || segment === '..'), 'must not contain . or .. segments')
  .default('')

/** The names of files, for kinds whose targets do not decide it themselves. */
export const fileNames = z
  .enum(['any', 'windows'])
  .default('any')
  .describe(
    'Which names files and folders get. any: those of the path, almost unchanged; windows: names that servers and shares of Windows accept. A change names later deliveries otherwise, also repeated ones',
  )

const partFileMaxCharacters = 100

/** The name of a file while it is being written, for kinds that rename it then. */
export const partFile = z
  .string()
  .max(partFileMaxCharacters)
  .refine(
    (text) => text.split('{id}').length === 2 && !text.slice(text.indexOf('{id}')).includes('/'),
    'must contain {id} once, in its last part: the files of two deliveries must not have one name',
  )
  .refine(
    (text) => !/[\\\p{Cc}]/u.test(text) && !text.split('/').some((segment) => ['', '.', '..'].includes(segment)),
    'must be a name or a relative path, without backslashes, control characters and empty, . or .. segments',
  )
  .default(hiddenPartFile)
  .describe(
    'Name of a file while it is written, before it gets its own. {id} stands for an id of the delivery. With slashes, a path below the folder of the destination, in the same file system, whose folders are created; otherwise in the folder of the file',
  )

/** Returns the check that an address has none of these parts. */
export const urlWithout =
  (...parts: ('username' | 'password' | 'port' | 'search' | 'hash')[]) =>
  (url: string): boolean =>
    !URL.canParse(url) || parts.every((part) => new URL(url)[part] === '')

/** An address that answers may show, since it contains no secret. */
export const plainUrl = z
  .url({ protocol: /^https?$/ })
  .max(1_024)
  .refine(urlWithout('username', 'password', 'search', 'hash'), 'must not contain a user name, a password or a query')

/** The authority that a destination trusts, for every kind that uses TLS. */
export const caCertificate = z
  .string()
  .max(100_000)
  .regex(/-----BEGIN CERTIFICATE-----/, 'must be a PEM certificate')
  .optional()
  .describe("PEM certificate of the authority that signed the target's certificate. Trusted instead of the public authorities")

/** Returns names as `a, b and c`. */
export const listOf = (names: readonly string[]) => [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ')
