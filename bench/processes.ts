import { readdirSync, readFileSync } from 'node:fs'

// Unit of times in /proc: 1/USER_HZ second. USER_HZ is 100 on every Linux that Node runs on.
const tickMs = 10

interface Stat {
  /** Name of the program in the kernel: node, temporal or postgres. */
  program: string
  pid: number
  parent: number
  cpuMs: number
}

const readStat = (pid: number): Stat | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name may contain spaces and parentheses. Count fields from the last parenthesis.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    // Include exited children (cutime, cstime), because PostgreSQL starts and ends backends.
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
    const program = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    return { program: program === 'MainThread' ? 'node' : program, pid, parent: Number(fields[1]), cpuMs: ticks * tickMs }
  } catch {
    return undefined
  }
}

/** Returns the running processes of this list with their descendants; none on a system without /proc. */
export const processTree = (roots: number[]): Stat[] => {
  let pids: number[]
  try {
    pids = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
  const stats = pids.map(readStat).filter((stat) => stat !== undefined)
  const tree = new Set(roots)
  for (let hasGrown = true; hasGrown;) {
    const { size } = tree
    for (const { pid, parent } of stats) if (tree.has(parent)) tree.add(pid)
    hasGrown = tree.size > size
  }
  return stats.filter(({ pid }) => tree.has(pid))
}

/**
 * Returns the CPU time of the processes and their descendants in milliseconds, by program.
 * @returns `undefined` on a system without /proc
 */
export const cpuByProgramMs = (roots: number[]): Record<string, number> | undefined => {
  const tree = processTree(roots)
  if (tree.length === 0) return undefined
  const byProgram: Record<string, number> = {}
  for (const { program, cpuMs } of tree) byProgram[program] = (byProgram[program] ?? 0) + cpuMs
  return byProgram
}
