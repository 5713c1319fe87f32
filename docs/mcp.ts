import { readFileSync } from 'node:fs'
import { tools } from '../src/cli/mcp/tools.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/mcp.md with its tables of tools generated from src/cli/mcp/tools.ts. */
export const mcpPage = (): string => {
  const tableOf = (changes: boolean) =>
    markdownTable(
      ['tool', 'level', 'operation', 'what it does'],
      tools
        .filter((tool) => (tool.changes !== undefined) === changes)
        .map(({ name, level, method, path, description }) => [`\`${name}\``, `\`${level}\``, `\`${method} ${path}\``, description]),
    )
  const page = readFileSync(new URL('mcp.md', import.meta.url), 'utf8')
  return withGenerated(withGenerated(page, 'reading tools', `\n${tableOf(false)}`), 'changing tools', `\n${tableOf(true)}`)
}
