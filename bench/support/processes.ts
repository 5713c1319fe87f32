import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

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

/** CPU time in milliseconds by the name of a process. */
export type CpuTimes = Record<string, number>

/**
 * Returns the CPU time that this process and its descendants have used, by name. A Node process, and its Node children, count under the name
 * that `names` has for its id; without a name it belongs to the benchmark and is left out. Any other process counts under its program.
 */
export const cpuTimes = (names: ReadonlyMap<number, string>): CpuTimes => sumByName(names, ({ cpuMs }) => cpuMs)

const sumByName = (names: ReadonlyMap<number, string>, valueOf: (stat: Stat) => number): Record<string, number> => {
  const stats = processTree([process.pid])
  const byPid = new Map(stats.map((stat) => [stat.pid, stat]))
  const nameOf = ({ pid, parent, program }: Stat): string | undefined => {
    const name = names.get(pid)
    if (name !== undefined || program !== 'node') return name ?? program
    const parentStat = byPid.get(parent)
    return pid === process.pid || !parentStat ? undefined : nameOf(parentStat)
  }
  const sums: Record<string, number> = {}
  for (const stat of stats) {
    const name = nameOf(stat)
    if (name !== undefined) sums[name] = (sums[name] ?? 0) + valueOf(stat)
  }
  return sums
}

/** Returns the resident memory of a process in MiB: the current value, and the highest since its start or the last `resetPeakMemory`. */
export const memoryOf = (pid: number): { nowMiB: number; peakMiB: number } => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024
  return { nowMiB: mebibytes('VmRSS'), peakMiB: mebibytes('VmHWM') }
}

const mebibytesIn = (pid: number, name: 'Pss' | 'Pss_Anon'): number => {
  try {
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    // It has just ended.
    return 0
  }
}

/** Returns the memory of a process in MiB; of pages that it shares with others, its part. */
const proportionalMiB = (pid: number): number => mebibytesIn(pid, 'Pss')

/**
 * Returns the memory in MiB that a process has allocated. The pages of its program do not count: its part of them changes whenever another process
 * of the same program starts or ends.
 */
export const allocatedMiB = (pid: number): number => mebibytesIn(pid, 'Pss_Anon')

/** Returns the memory in MiB that a process and its descendants have allocated. */
export const allocatedTreeMiB = (pid: number): number => processTree([pid]).reduce((sum, each) => sum + allocatedMiB(each.pid), 0)

/** Returns the memory that this process and its descendants have now, by the names that `cpuTimes` gives them. */
export const memoryByName = (names: ReadonlyMap<number, string>): Record<string, number> =>
  sumByName(names, ({ pid }) => proportionalMiB(pid))

/** Returns the resident memory of a process and its descendants in MiB. Pages that they share count for each. */
export const treeMemoryMiB = (pid: number): number => processTree([pid]).reduce((sum, process) => sum + memoryOf(process.pid).nowMiB, 0)

/** Makes the kernel forget the highest resident memory of a process. */
export const resetPeakMemory = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5')
