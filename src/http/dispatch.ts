import type { Middleware } from 'koa'

// Of the target as it was sent. A proxy may send the absolute form.
const firstSegment = /^(?:[a-z]+:\/\/[^/?]*)?\/([^/?#]*)/i

/**
 * Passes each request to the surface that is named by the first segment of its path, and every other request to the next middleware. A
 * surface does the same with what it does not serve below its segment.
 */
export const dispatch = (surfaces: Record<string, Middleware>): Middleware => {
  const bySegment = new Map(Object.entries(surfaces))
  return (context, next) => {
    const surface = bySegment.get(firstSegment.exec(context.req.url ?? '')?.[1] ?? '')
    return surface ? surface(context, next) : next()
  }
}
