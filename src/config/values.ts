// Schemas of the values of environment variables, and units.
import { z } from 'zod'
import type { Grant } from '../base/grants.ts'
import { workspaceNamePattern } from '../base/workspace-name.ts'

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

/** Entries that allow something to workspaces: `VALUE` to each of them, `user/workspace=VALUE` to one. */
export const grants = (description: string, item: z.ZodType<string, string>) =>
  list(description)
    .transform((entries): Grant[] => entries.map(grantOf))
    .pipe(z.array(z.object({ workspace: z.string().optional(), value: item })))
    .describe(description)

const grantOf = (entry: string): Grant => {
  const [name = '', ...rest] = entry.split('=')
  return rest.length > 0 && workspaceNamePattern.test(name) ? { workspace: name, value: rest.join('=').trim() } : { value: entry }
}

export const httpUrl = (description: string) =>
  z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(description)

export const isOrigin = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text

export const MiB = 1024 * 1024
export const GiB = 1024 * MiB
export const TiB = 1024 * GiB
