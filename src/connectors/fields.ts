import { z } from 'zod'

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
