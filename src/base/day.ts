export const dayMs = 86_400_000

/** Returns the day (UTC) of a time, as `yyyy-mm-dd`. */
export const dayOf = (time: Date): string => time.toISOString().slice(0, 'yyyy-mm-dd'.length)

export const startOfDay = (day: string): Date => new Date(`${day}T00:00:00.000Z`)

/** Returns the first moment after a day. */
export const endOfDay = (day: string): Date => new Date(startOfDay(day).getTime() + dayMs)

export const dayAfter = (day: string): string => dayOf(endOfDay(day))
