import { fieldsOf, type JsonSchema, type SchemaField } from './schema-form.ts'

/** The schemas of the bodies of requests, by operation. The relay writes them into this module when it serves the console. */
export const requestSchemas: Record<string, JsonSchema> = {}

/** Returns the fields of the body of a request. @param operation method and path in the API, such as `POST /notifications` */
export const requestFields = (operation: string): SchemaField[] => fieldsOf(requestSchemas[operation]!)
