// Reads what people type into forms. Pure, so that it can be tested without a browser.

interface Bounds {
  min: number
  max?: number
}

/** Why a text is no number that may be sent. */
export type NumberProblem = 'required' | 'notANumber' | 'tooSmall' | 'tooLarge'

/** Reads a whole number. An empty text is null, if the number may be left out. */
export const readNumber = (
  text: string,
  { min, max }: Bounds,
  isOptional = false,
): { value: number | null } | { problem: NumberProblem } => {
  const trimmed = text.trim()
  if (trimmed === '') return isOptional ? { value: null } : { problem: 'required' }
  if (!/^-?\d+$/.test(trimmed)) return { problem: 'notANumber' }
  const value = Number(trimmed)
  if (value < min) return { problem: 'tooSmall' }
  return value > (max ?? Number.MAX_SAFE_INTEGER) ? { problem: 'tooLarge' } : { value }
}

/** Returns the lines of a text that are not blank. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** Returns the entries of `next` that differ from those of `current`: what a change has to contain. */
export const changedEntries = (current: Record<string, unknown>, next: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(next).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(current[name])))
