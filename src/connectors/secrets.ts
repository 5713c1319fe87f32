import { z } from 'zod'

interface Described {
  secret?: boolean
  properties?: Record<string, Described>
}

/** Every text of the credentials that their schema marks as secret, however deep it lies. */
export const secretsIn = (credentials: z.ZodType, value: unknown): string[] =>
  marked(z.toJSONSchema(credentials, { io: 'output', unrepresentable: 'any' }) as Described, value)

const marked = ({ secret, properties = {} }: Described, value: unknown): string[] => {
  if (typeof value === 'string') return secret ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, part]) => marked(properties[key] ?? {}, part))
}
