import { describeApi } from '../src/api/open-api/document.ts'

/** openapi.json, from the table of endpoints. */
export const openApiFile = (): string => `${JSON.stringify(describeApi(), null, 2)}\n`
