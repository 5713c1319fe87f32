import { readFileSync } from 'node:fs'
import { apiEndpoints, type EndpointDeps } from '../src/api/app.ts'
import { keyLevels } from '../src/security/levels.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

const bridge = { level: 'member', method: 'POST', path: '/bridge/{userSlug}/{workspaceSlug}/rfc/{FUNCTION}' }

/** Returns docs/security.md with its table of levels generated from the endpoints: a row for each resource. */
export const securityPage = (): string => {
  // Opens nothing, because no handler is called.
  const operations = [...apiEndpoints({} as EndpointDeps), bridge].map(({ level, method, path }) => {
    const [, resource = '', rest = ''] = /^(\/[\w-]+)(.*)$/.exec(path)!
    return { level, resource, text: `\`${`${method} ${rest}`.trim()}\`` }
  })
  const resources = [...new Set(operations.map(({ resource }) => resource))]
  const rows = resources.map((resource) => [
    `\`${resource}\``,
    ...keyLevels.map((level) =>
      operations
        .filter((operation) => operation.resource === resource && operation.level === level)
        .map(({ text }) => text)
        .join(', '),
    ),
  ])
  const table = markdownTable(['Resource', ...keyLevels.map((level) => `\`${level}\``)], rows)
  const page = readFileSync(new URL('security.md', import.meta.url), 'utf8')
  return withGenerated(page, 'levels', `\n${table}`)
}
