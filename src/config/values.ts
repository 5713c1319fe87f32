// Schemas of the values of environment variables, and units.
import { z } from 'zod'

export const integer = (fallback: number, lowest: number, description: string) =>
  z.coerce.number().int().min(lowest).default(fallback).describe(description)

export const flag = (fallback: boolean, description: string) =>
  z
    .enum(['true', 'false'])
    .default(fallback ? 'true' : 'false')
    .transform((value) => value === 'true')
    .describe(description)

export const list = (description: string, item: z.ZodType<string, string> = z.string(), fallback = '') =>
  z
    .string()
    .default(fallback)
    .transform((text) =>
      text
        .split(',')
        .map((entry) => entry.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item))
    .describe(description)

export const httpUrl = (description: string) =>
  z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(description)

export const isOrigin = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text

export const MiB = 1024 * 1024
export const GiB = 1024 * MiB
export const TiB = 1024 * GiB
