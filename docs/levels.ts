import { readFileSync } from 'node:fs'
import { apiEndpoints, type EndpointDeps } from '../src/api/app.ts'
import { keyLevels } from '../src/security/levels.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/security.md with its table of levels generated from the endpoints. */
export const securityPage = (): string => {
  // Opens nothing, because no handler is called.
  const endpoints = apiEndpoints({} as EndpointDeps)
  const rows = keyLevels.flatMap((level) =>
    endpoints
      .filter((endpoint) => endpoint.level === level)
      .map(({ method, path, summary }) => [`\`${level}\``, summary, `\`${method} ${path}\``]),
  )
  const bridge = ['`member`', 'Call a function of the source system', '`POST /bridge/{userSlug}/{workspaceSlug}/rfc/{FUNCTION}`']
  const lastOfMember = rows.findLastIndex(([level]) => level === '`member`')
  const table = markdownTable(['level', 'may', 'operation'], rows.toSpliced(lastOfMember + 1, 0, bridge))
  const page = readFileSync(new URL('security.md', import.meta.url), 'utf8')
  return withGenerated(page, 'levels', `\n${table}`)
}
