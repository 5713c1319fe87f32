import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ, the unit of /proc: 100 on every Linux that Node runs on
const tickMs = 10

interface Stat {
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
    return { pid, parent: Number(fields[1]), cpuMs: ticks * tickMs }
  } catch {
    return undefined
  }
}

/** CPU time of a process and all below it, in milliseconds; undefined where there is no /proc. */
export const cpuOfTreeMs = (root: number): number | undefined => {
  let pids: number[]
  try {
    pids = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return undefined
  }
  const stats = pids.map(readStat).filter((stat) => stat !== undefined)
  const tree = new Set([root])
  for (let grown = true; grown;) {
    const size = tree.size
    for (const { pid, parent } of stats) if (tree.has(parent)) tree.add(pid)
    grown = tree.size > size
  }
  return stats.filter(({ pid }) => tree.has(pid)).reduce((sum, { cpuMs }) => sum + cpuMs, 0)
}
