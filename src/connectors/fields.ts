import { z } from 'zod'

/** A line of text that is passed on to the target as it is. */
export const plainText = (maxCharacters: number) =>
  z
    .string()
    .min(1)
    .max(maxCharacters)
    .regex(/^\P{Cc}+$/u, 'may hold no control characters')

export const hostName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\s/@]+$/, 'is a host name or address, without user or path')

export const tcpPort = z.int().min(1).max(65_535)

/** What lies before the name of an object in a store without folders. */
export const keyPrefix = z
  .string()
  .max(512)
  .regex(/^(?!\/)\P{Cc}*$/u, 'may not begin with a slash or hold control characters')
  .refine((prefix) => !prefix.split('/').some((segment) => segment === '.' || segment === '..'), 'may hold no . or .. parts')
  .default('')

/** An address that can be shown: nothing in it is secret. */
export const plainUrl = z
  .url({ protocol: /^https?$/ })
  .max(1_024)
  .refine((url) => {
    if (!URL.canParse(url)) return true
    const { username, password, search, hash } = new URL(url)
    return `${username}${password}${search}${hash}` === ''
  }, 'may hold no user name, password or query')
