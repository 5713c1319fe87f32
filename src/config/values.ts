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

export const list = (description: string, item: z.ZodType<string, string> = z.string()) =>
  z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((entry) => entry.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item))
    .describe(description)

/** Reads `name=value` pairs, separated by commas, with percent-encoded values: the format of the OpenTelemetry variables. */
export const pairs = (description: string) =>
  z
    .string()
    .default('')
    .refine((text) => text.split(',').every((pair) => pair.trim() === '' || /^[^=]+=/.test(pair.trim())), 'must be name=value pairs')
    .transform((text) =>
      Object.fromEntries(
        text
          .split(',')
          .filter((pair) => pair.trim() !== '')
          .map((pair): [string, string] => {
            const equals = pair.indexOf('=')
            return [pair.slice(0, equals).trim(), decoded(pair.slice(equals + 1).trim())]
          }),
      ),
    )
    .describe(description)

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const httpUrl = (description: string) =>
  z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(description)

export const isOrigin = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text

export const KiB = 1024
export const MiB = 1024 * KiB
export const GiB = 1024 * MiB
export const TiB = 1024 * GiB
