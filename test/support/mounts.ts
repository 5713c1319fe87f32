import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

// A name space of its own: what is mounted there, is there for the child only, and gone with it.
const unshare = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']

const canUnshare = (): boolean => {
  try {
    execFileSync('unshare', [...unshare, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Why this machine cannot mount file systems for a test. */
export const mountsMissing = process.platform === 'linux' && canUnshare() ? undefined : 'this machine lets no process mount file systems'

/**
 * Runs a script in a process that may mount file systems.
 * @returns what it prints, parsed as JSON
 */
export const runWithMounts = async (script: URL, ...args: string[]): Promise<unknown> => {
  const command = [process.execPath, '--disable-warning=ExperimentalWarning', script.pathname, ...args]
  const { stdout } = await run('unshare', [...unshare, ...command])
  return JSON.parse(stdout)
}
