import type { Content } from './store.ts'

export interface ByteRange {
  start?: number | undefined
  end?: number | undefined
}

/** The bytes a range means, both ends inclusive and inside of the content; undefined where that is none at all. */
export const clampRange = (content: Content, { start = 0, end = Number.MAX_SAFE_INTEGER }: ByteRange = {}) => {
  const last = Math.min(end, content.sizeBytes - 1)
  return start <= last ? { start, end: last } : undefined
}
