const hourMs = 3_600_000

/** Creates a budget of bytes per workspace and hour, counted in this process. */
export const createHourlyBudget = (maxBytes: number, now: () => number = Date.now) => {
  let hour = 0
  const spentBytes = new Map<string, number>()
  const ofThisHour = () => {
    const thisHour = Math.floor(now() / hourMs)
    if (thisHour !== hour) spentBytes.clear()
    hour = thisHour
    return spentBytes
  }
  return {
    isSpent: (workspace: string): boolean => (ofThisHour().get(workspace) ?? 0) >= maxBytes,
    /** @param workspace an existing one: each takes memory until the end of the hour */
    spend: (workspace: string, bytes: number): void => {
      const spent = ofThisHour()
      spent.set(workspace, (spent.get(workspace) ?? 0) + bytes)
    },
  }
}
