const isParameter = (segment: string) => segment.startsWith(':')
const isPlural = (segment: string) => segment.endsWith('s')
const singular = (segment: string) => segment.replace(/ies$/, 'y').replace(/s$/, '')

/** Converts words in any spelling, such as `bulk-retries` or `not_found`, to PascalCase. */
export const pascalCase = (text: string) =>
  text.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
const camelCase = (text: string) => text.charAt(0).toLowerCase() + text.slice(1)

const verbs: Record<string, string> = { PUT: 'put', PATCH: 'update', DELETE: 'delete' }

/**
 * Derives the name of an operation from its method and path, so that no name changes by accident. A collection followed
 * by an id is written in the singular: `GET /documents` is listDocuments, `GET /documents/:id` getDocument,
 * `GET /documents/:id/attempts` listDocumentAttempts. A POST to a collection creates; a POST to any other word does
 * what the word says: `POST /documents/:id/retry` is retryDocument. An endpoint whose path reads otherwise names its `operation`.
 */
export const operationId = (method: string, path: string, isList: boolean): string => {
  const segments = path.split('/').slice(1)
  const words = segments.flatMap((segment, index) => {
    if (isParameter(segment)) return []
    return [segments[index + 1]?.startsWith(':') ? singular(segment) : segment]
  })
  const noun = (parts: string[]) => parts.map(pascalCase).join('')
  const last = words.at(-1) ?? ''
  if (method === 'GET') return camelCase((isList ? 'list' : 'get') + noun(words))
  if (method !== 'POST') return camelCase(verbs[method] + noun(words))
  if (isPlural(last)) return camelCase(`create${noun([...words.slice(0, -1), singular(last)])}`)
  return camelCase(pascalCase(last) + noun(words.slice(0, -1)))
}

/** Returns the type of the resources of a path, such as `bulk_retry` for `/bulk-retries/:id`. */
export const resourceTypeOf = (path: string): string => {
  const type = singular(tagOf(path)).replaceAll('-', '_')
  return type === 'request' ? 'captured_request' : type
}

/** Returns the tag that groups an operation: the first segment of its path. */
export const tagOf = (path: string): string => (path.split('/')[1] ?? '').replace(/\..*$/, '')

/** Returns the name of the schema of a message to webhooks. */
export const messageName = (type: string): string => `${pascalCase(type)}Message`

/** Returns the name of the schema of an event that is sent to webhooks. */
export const eventSchemaName = (event: string): string => `${pascalCase(event)}Event`
