import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

export interface Step {
  /** The commands as they stand on the page. */
  commands: string
  /** The output that the page promises: the next block, unless that is a block of commands. */
  answer: string | undefined
}

/** Returns the steps of a page from its fenced blocks: commands are ```bash, answers ```json or ```text. */
export const stepsOf = (page: string): Step[] => {
  const blocks = [...page.matchAll(/^```(bash|json|text)\n(.*?)^```$/gms)].map(([, language, content]) => ({ language, content: content! }))
  return blocks.flatMap(({ language, content }, index) => {
    if (language !== 'bash') return []
    const next = blocks[index + 1]
    return [{ commands: content, answer: next && next.language !== 'bash' ? next.content : undefined }]
  })
}

const separator = '\x1e'

/** Runs the commands in one shell, which stops at the first failure. @returns the output of each step */
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
  const [output, errors] = await Promise.all([text(shell.stdout), text(shell.stderr)])
  const [status] = (await ended) as [number | null]
  const answers = output.split(separator)
  if (status !== 0)
    throw new Error(`step ${answers.length} ended with ${status}:\n${commands[answers.length - 1]}\n${answers.at(-1)}\n${errors}`)
  return answers.slice(0, -1)
}

/** Texts that differ in every run. */
const variable: [RegExp, string][] = [
  // A CSV export ends its lines with CRLF; a page does not.
  [/\r\n/g, '\n'],
  [/relay_[0-9A-Z]{26}_[\w-]{43}/g, 'relay_<key>'],
  [/[0-7][0-9A-HJKMNP-TV-Z]{25}/g, '<id>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/"(duration_ms)":\s*\d+/g, '"$1":0'],
  [/curl\/[\d.]+/g, 'curl'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
]

/** Returns an answer without the texts that differ in every run; JSON is parsed, so that its layout does not count. */
export const comparable = (answer: string): unknown => {
  const plain = variable.reduce((rest, [pattern, name]) => rest.replaceAll(pattern, name), answer.trim())
  return /^[[{]/.test(plain) ? JSON.parse(plain) : plain
}
