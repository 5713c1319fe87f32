import { z } from 'zod'

const functionsMax = 1_000

/** As ABAP names them, with a namespace where it is a customer's or a partner's. */
export const functionName = z.string().regex(/^(\/[A-Z0-9_]{1,10}\/)?[A-Z0-9_]{1,30}$/, 'must be a function name in upper case')

const isOrigin = (text: string) =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text.replace(/\/$/, '')

/** The system that the bridge calls functions of. */
export const rfcFields = z.strictObject({
  url: z
    .string()
    .refine(isOrigin, 'must be http or https, a host and a port, and nothing else')
    .describe('Scheme, host and port of the system'),
  client: z
    .string()
    .regex(/^\d{3}$/, 'must be three digits')
    .describe('Logged on to'),
  language: z
    .string()
    .regex(/^[A-Z]{2}$/, 'must be two letters')
    .optional()
    .describe("Of messages; without it, the user's own"),
  allowed_functions: z.array(functionName).max(functionsMax).default([]).describe('Only these are called; empty: none'),
  ca_certificate: z.string().optional().describe("PEM. Trusted in place of the public authorities, for a system with a company's own"),
})

export const rfcCredentials = z.strictObject({
  user: z.string().min(1).meta({ secret: true }),
  password: z.string().min(1).meta({ secret: true }),
})

/** A change: what is named is merged in, `null` for all of it ends the bridge. */
export const rfcPatchFields = rfcFields
  .extend({ allowed_functions: rfcFields.shape.allowed_functions.unwrap() })
  .partial()
  .extend({
    credentials: rfcCredentials.optional().describe('Write-only; a new url needs them again'),
  })
