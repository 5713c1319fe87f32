export const isFullRun = process.env.TEST_FULL === '1'

/** Returns the first value in a full test run (`TEST_FULL=1`), the second one otherwise. */
export const fullOr = (full: number, usual: number) => (isFullRun ? full : usual)
