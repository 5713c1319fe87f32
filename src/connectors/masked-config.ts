import { z } from 'zod'

const mask = '[REDACTED]'

/** Returns the keys of a config schema whose values may contain secrets: those with `.meta({ masked: true })`. */
export const maskedKeys = (config: z.ZodType): string[] => {
  const { properties = {} } = z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }) as {
    properties?: Record<string, { masked?: boolean }>
  }
  return Object.keys(properties).filter((key) => properties[key]!.masked)
}

/** Returns a config as viewers see it. */
export const maskedConfig = (keys: readonly string[], config: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(config).map(([key, value]) => [key, keys.includes(key) ? maskedValue(value) : value]))

/** Keeps the origin of an address, and the names of a record. */
const maskedValue = (value: unknown): unknown => {
  if (typeof value === 'string') return URL.canParse(value) ? maskedUrl(value) : mask
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.keys(value).map((name) => [name, mask])) : mask
}

/** Returns an address whose path and query, which may contain a key, are masked. */
export const maskedUrl = (url: string): string => {
  const { origin, pathname, search, hash } = new URL(url)
  return `${pathname}${search}${hash}` === '/' ? `${origin}/` : `${origin}/${mask}`
}
