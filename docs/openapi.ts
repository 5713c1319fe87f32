import { describeApi } from '../src/api/open-api/document.ts'
import { generatedJson } from './generated-json.ts'

/** openapi.json, from the table of endpoints. */
export const openApiFile = (): string => generatedJson(describeApi())
