import { z } from 'zod'
import { environment } from '../src/config.ts'

const defaultOf = (field: z.ZodType): string => {
  const value = field.safeParse(undefined).data
  const shown = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
  return shown && `\`${shown}\``
}

/** docs/configuration.md, from the schema that reads the environment. */
export const configurationPage = (): string => {
  const rows = Object.entries(environment.shape).map(
    ([name, field]) => `| \`${name}\` | ${defaultOf(field)} | ${field.description ?? ''} |`,
  )
  return `# Configuration

Environment variables, read once at start. A number's unit is the end of its name. Temporal is found by the standard \`TEMPORAL_*\`
variables and profiles (\`TEMPORAL_ADDRESS\`, \`TEMPORAL_NAMESPACE\`, \`TEMPORAL_API_KEY\`, \`TEMPORAL_TLS_*\`). This page is made by \`npm run docs\`.

| Variable | Default | Meaning |
|---|---|---|
${rows.join('\n')}
`
}
