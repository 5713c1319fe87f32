import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Account } from '../../src/programs/programs.ts'

export interface Step {
  /** The heading above the commands. */
  heading: string
  /** The commands as they stand on the page. */
  commands: string
  /** The output that the page promises: the next block, unless that is a block of commands. */
  answer: string | undefined
}

/** The pages whose commands a test runs, by the test. */
export const walkedPages = {
  'test/docs/pages.release.test.ts': [
    'README.md',
    'docs/api.md',
    'docs/audit-log.md',
    'docs/bridge.md',
    'docs/configuration-as-code.md',
    'docs/console.md',
    'docs/install.md',
    'docs/notifications.md',
    'docs/observability.md',
    'docs/security.md',
    'docs/source-system.md',
    'docs/temporal.md',
    'docs/tutorial.md',
  ],
  'test/docs/backup.release.test.ts': ['docs/backup.md'],
  'test/docs/upgrade.release.test.ts': ['docs/upgrade.md'],
}

/** Returns the steps of a page from its fenced blocks: commands are ```bash, answers ```json or ```text. */
export const stepsOf = (page: string): Step[] => {
  const blocks = [...page.matchAll(/^```(bash|json|text)\n(.*?)^```$/gms)].map(({ index, 1: language, 2: content }) => ({
    language,
    content: content!,
    heading: headingAt(page, index),
  }))
  return blocks.flatMap(({ language, content, heading }, index) => {
    if (language !== 'bash') return []
    const next = blocks[index + 1]
    return [{ heading, commands: content, answer: next && next.language !== 'bash' ? next.content : undefined }]
  })
}

// A block of commands may contain comments, which begin like a heading of the first level.
const headingAt = (page: string, index: number): string => [...page.slice(0, index).matchAll(/^##+ (.*)$/gm)].at(-1)?.[1] ?? ''

const separator = '\x1e'

/**
 * Runs the commands in one shell, which stops at the first failure. After `timeoutMs`, it is killed with all that it has started, also in
 * the background: what is left would keep the output open, and the step that did not end would stay unknown.
 * @param options.account that of the shell, if it is another one
 * @returns the output of each step
 */
export const runSteps = async (
  commands: string[],
  { folder, environment, timeoutMs, account }: { folder: string; environment: NodeJS.ProcessEnv; timeoutMs: number; account?: Account },
): Promise<string[]> => {
  const shell = spawn('bash', ['-euo', 'pipefail', '-s'], {
    cwd: folder,
    env: environment,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    ...account,
  })
  const timer = setTimeout(() => process.kill(-shell.pid!, 'SIGKILL'), timeoutMs)
  const ended = once(shell, 'close')
  shell.stdin.on('error', () => {})
  shell.stdin.end(commands.map((block) => `${block}\nprintf '\\036'\n`).join(''))
  const [output, errors] = await Promise.all([text(shell.stdout), text(shell.stderr)])
  const [status] = (await ended) as [number | null]
  clearTimeout(timer)
  const answers = output.split(separator)
  if (status !== 0)
    throw new Error(`step ${answers.length} ended with ${status}:\n${commands[answers.length - 1]}\n${answers.at(-1)}\n${errors}`)
  return answers.slice(0, -1)
}

/** Replaces the values that commands give to variables by those of a test. @throws if the commands do not set one of them */
export const withValues = (commands: string, values: Record<string, string>): string =>
  Object.entries(values).reduce((rest, [name, value]) => {
    const assignment = new RegExp(`^(export ${name}=)\\S+`, 'm')
    if (!assignment.test(rest)) throw new Error(`the page does not set ${name}`)
    return rest.replace(assignment, (_, beginning: string) => `${beginning}'${value}'`)
  }, commands)

/** Texts that differ in every run. */
const variable: [RegExp, string][] = [
  // A CSV export ends its lines with CRLF; a page does not.
  [/\r\n/g, '\n'],
  [/relay_[0-9A-Z]{26}_[\w-]{43}/g, 'relay_<key>'],
  [/[0-7][0-9A-HJKMNP-TV-Z]{25}/g, '<id>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/"(duration_ms)":\s*\d+/g, '"$1":0'],
  [/curl\/[\d.]+/g, 'curl'],
  [/etag "[\w-]+"/g, 'etag <etag>'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
]

/** Returns an answer without the texts that differ in every run; JSON is parsed, so that its layout does not count. */
export const comparable = (answer: string): unknown => {
  const plain = variable.reduce((rest, [pattern, name]) => rest.replaceAll(pattern, name), answer.trim())
  return /^[[{]/.test(plain) ? JSON.parse(plain) : plain
}
