interface Spent {
  heads: number
  bodies: number
}

const hourMs = 3_600_000

/**
 * Creates a limit of the bytes that the captures of one workspace may add to the disk in one hour.
 * @param maxBytes for heads and bodies of requests
 * @param bodiesMaxBytes for bodies. What remains is left to heads, even if the last body exceeds this limit
 */
export const createHourlyBudget = (maxBytes: number, bodiesMaxBytes: number, now: () => number) => {
  let hour = 0
  const spent = new Map<string, Spent>()
  const spentOf = (workspace: string): Spent => {
    const thisHour = Math.floor(now() / hourMs)
    if (thisHour !== hour) spent.clear()
    hour = thisHour
    return spent.get(workspace) ?? { heads: 0, bodies: 0 }
  }
  return {
    /** Returns true if a workspace has stored as much in this hour as it may. */
    isSpent: (workspace: string): boolean => {
      const { heads, bodies } = spentOf(workspace)
      return heads + Math.min(bodies, bodiesMaxBytes) >= maxBytes
    },
    /** Returns true if a workspace has stored as many bytes of bodies in this hour as it may. */
    isSpentOnBodies: (workspace: string): boolean => spentOf(workspace).bodies >= bodiesMaxBytes,
    /** @param workspace an existing one: each takes memory until the end of the hour */
    spend: (workspace: string, bytes: Spent): void => {
      const { heads, bodies } = spentOf(workspace)
      spent.set(workspace, { heads: heads + bytes.heads, bodies: bodies + bytes.bodies })
    },
  }
}

export type HourlyBudget = ReturnType<typeof createHourlyBudget>
