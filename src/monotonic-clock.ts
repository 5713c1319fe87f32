/** Returns milliseconds since the start of the process. Unlike `Date.now`, it does not jump when the system's clock is set. */
export const monotonicNow = (): number => performance.now()
