import { z } from 'zod'

const functionsMax = 1_000

/** Name of an ABAP function module, with an optional namespace of a customer or partner. */
export const functionName = z
  .string()
  .regex(/^(\/[A-Z0-9_]{1,10}\/)?[A-Z0-9_]{1,30}$/, 'must be the name of a function module in upper case')

const isOrigin = (text: string) =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text.replace(/\/$/, '')

/** Schema of the system whose functions the bridge calls. */
export const rfcFields = z.strictObject({
  url: z
    .string()
    .refine(isOrigin, 'must be a URL of scheme http or https, host and port only')
    .describe('Scheme, host and port of the system'),
  client: z
    .string()
    .regex(/^[0-9]{3}$/, 'must be three digits')
    .describe('Client to log on to'),
  language: z
    .string()
    .regex(/^[A-Z]{2}$/, 'must be two letters')
    .optional()
    .describe("Logon language; the default is the user's own"),
  allowed_functions: z.array(functionName).max(functionsMax).default([]).describe('Functions that may be called; empty: none'),
  ca_certificate: z.string().optional().describe('CA certificate in PEM, trusted instead of the public certificate authorities'),
})

export const rfcCredentials = z.strictObject({
  user: z.string().min(1).meta({ secret: true }),
  password: z.string().min(1).meta({ secret: true }),
})

/** The keys that say where the stored credentials are sent, in whose name they are used there, and which server is trusted. */
export const rfcBoundKeys = ['url', 'client', 'ca_certificate'] as const satisfies (keyof z.output<typeof rfcFields>)[]

/** Schema of a change: the given keys are merged, and `null` in place of the object switches the bridge off. */
export const rfcPatchFields = rfcFields
  .extend({ allowed_functions: rfcFields.shape.allowed_functions.unwrap() })
  .partial()
  .extend({
    credentials: rfcCredentials
      .meta({ id: 'RfcCredentials' })
      .optional()
      .describe('Write-only. A new url, client or ca_certificate requires the credentials in the same request'),
  })
