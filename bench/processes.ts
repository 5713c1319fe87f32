import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ, the unit of /proc: 100 on every Linux that Node runs on
const tickMs = 10

interface Stat {
  /** As the kernel calls it: node, temporal, postgres. */
  program: string
  pid: number
  parent: number
  cpuMs: number
}

const readStat = (pid: number): Stat | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // the name may hold blanks and parentheses: fields are counted from the last one
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    // ended children count too (cutime, cstime): PostgreSQL's backends come and go
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
    const program = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    return { program: program === 'MainThread' ? 'node' : program, pid, parent: Number(fields[1]), cpuMs: ticks * tickMs }
  } catch {
    return undefined
  }
}

/** CPU time of these processes and all below them, by program, in milliseconds; undefined where there is no /proc. */
export const cpuByProgramMs = (roots: number[]): Record<string, number> | undefined => {
  let pids: number[]
  try {
    pids = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return undefined
  }
  const stats = pids.map(readStat).filter((stat) => stat !== undefined)
  const tree = new Set(roots)
  for (let grown = true; grown;) {
    const { size } = tree
    for (const { pid, parent } of stats) if (tree.has(parent)) tree.add(pid)
    grown = tree.size > size
  }
  const byProgram: Record<string, number> = {}
  for (const { pid, program, cpuMs } of stats) if (tree.has(pid)) byProgram[program] = (byProgram[program] ?? 0) + cpuMs
  return byProgram
}
