import type { JsonSchema } from './schema-form.ts'

/** The schemas of the bodies of requests, by operation. The relay writes them into this module when it serves the console. */
export const requestSchemas: Record<string, JsonSchema> = {}
