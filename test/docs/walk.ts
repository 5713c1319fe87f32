import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

export interface Step {
  /** As the page has them. */
  commands: string
  /** What the page says they answer: the next block, where that is no command. */
  answer: string | undefined
}

/** The fenced blocks of a page: commands are ```bash, answers ```json or ```text. */
export const stepsOf = (page: string): Step[] => {
  const blocks = [...page.matchAll(/^```(bash|json|text)\n(.*?)^```$/gms)].map(([, language, content]) => ({ language, content: content! }))
  return blocks.flatMap(({ language, content }, index) => {
    if (language !== 'bash') return []
    const next = blocks[index + 1]
    return [{ commands: content, answer: next && next.language !== 'bash' ? next.content : undefined }]
  })
}

const separator = '\x1e'

/** Runs the commands in one shell, which the first failure ends. @returns what each step has said */
export const runSteps = async (
  commands: string[],
  { folder, environment, timeoutMs }: { folder: string; environment: NodeJS.ProcessEnv; timeoutMs: number },
): Promise<string[]> => {
  const shell = spawn('bash', ['-euo', 'pipefail', '-s'], {
    cwd: folder,
    env: environment,
    stdio: ['pipe', 'pipe', 'pipe'],
    signal: AbortSignal.timeout(timeoutMs),
  })
  shell.on('error', () => {})
  const ended = once(shell, 'close')
  shell.stdin.on('error', () => {})
  shell.stdin.end(commands.map((block) => `${block}\nprintf '\\036'\n`).join(''))
  const [said, complaints] = await Promise.all([text(shell.stdout), text(shell.stderr)])
  const [status] = (await ended) as [number | null]
  const answers = said.split(separator)
  if (status !== 0)
    throw new Error(`step ${answers.length} ended with ${status}:\n${commands[answers.length - 1]}\n${answers.at(-1)}\n${complaints}`)
  return answers.slice(0, -1)
}

/** What is different in every run. */
const passing: [RegExp, string][] = [
  // a table in CSV has them, a page of ours not
  [/\r\n/g, '\n'],
  [/relay_[0-9A-Z]{26}_[\w-]{43}/g, 'relay_<key>'],
  [/[0-7][0-9A-HJKMNP-TV-Z]{25}/g, '<id>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/"(duration_ms)":\s*\d+/g, '"$1":0'],
  [/curl\/[\d.]+/g, 'curl'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
]

/** An answer without what is different in every run, and whatever its layout if it is JSON. */
export const comparable = (answer: string): unknown => {
  const plain = passing.reduce((rest, [pattern, name]) => rest.replaceAll(pattern, name), answer.trim())
  return /^[[{]/.test(plain) ? JSON.parse(plain) : plain
}
