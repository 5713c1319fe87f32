import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError, isDeleting, toApiError } from './api.ts'
import { isStreaming, onChange } from './events.ts'

export interface Live<Data> {
  data?: Data
  /** The error of the last update. `data` is then what was loaded before. */
  error?: ApiError
  /** When `data` were loaded, in milliseconds since 1970. */
  loadedAt?: number
  /** True if they are loaded again from time to time, also after an error. */
  isKept: boolean
  reload(): void
}

const refreshMs = 5_000
// While the relay tells of changes, asking only makes sure.
const streamingRefreshMs = 30_000
// A connection may break without the browser noticing.
const loadMaxMs = 30_000
// A busy workspace changes all the time: at most a fifth of the time is spent on loading.
const pauseMinMs = 1_000
const pausePerLoad = 4

interface State<Data> {
  key: string
  data?: Data
  loadedAt?: number
  error?: ApiError
}

const errorOf = (thrown: unknown, hasTimedOut: boolean): ApiError => {
  if (hasTimedOut) return new ApiError(0, 'unreachable', 'no answer')
  return toApiError(thrown)
}

/**
 * Loads data and keeps them current: when the relay tells of a change and, for the case that it does not, by asking again. Neither happens
 * while the page is hidden or a deletion is under way: what is shown may vanish before the answer has come, which leads to another screen.
 * @param key identifies the data: another key loads them again
 * @param intervalMs 0 loads them only once
 */
export const useLive = <Data>(key: string, load: (signal: AbortSignal) => Promise<Data>, intervalMs = refreshMs): Live<Data> => {
  const [state, setState] = useState<State<Data>>({ key })
  const loadRef = useRef(load)
  loadRef.current = load
  const reloadRef = useRef(() => {})

  // Ends as soon as another screen replaces this one: the cleanup of a plain effect waits until that has been painted.
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let controller = new AbortController()
    // Under way, or due as soon as no deletion is.
    let isLoading = true
    let hasChanged = false
    let pauseMs = pauseMinMs
    const runIn = (ms: number) => {
      clearTimeout(timer)
      timer = setTimeout(() => void run(), ms)
    }
    const run = async () => {
      clearTimeout(timer)
      controller.abort()
      const own = new AbortController()
      controller = own
      const { signal } = own
      let hasTimedOut = false
      const limit = setTimeout(() => {
        hasTimedOut = true
        own.abort()
      }, loadMaxMs)
      const isObsolete = () => signal.aborted && !hasTimedOut
      const start = performance.now()
      isLoading = true
      hasChanged = false
      try {
        const data = await loadRef.current(signal)
        if (!isObsolete()) setState({ key, data, loadedAt: Date.now() })
      } catch (thrown) {
        if (isObsolete()) return
        const error = errorOf(thrown, hasTimedOut)
        setState((previous) => ({ ...(previous.key === key && previous), key, error }))
      } finally {
        clearTimeout(limit)
      }
      if (isObsolete()) return
      isLoading = false
      pauseMs = Math.max(pauseMinMs, pausePerLoad * (performance.now() - start))
      if (document.hidden || intervalMs <= 0) return
      if (hasChanged) runIn(pauseMs)
      else runIn(isStreaming.peek() ? Math.max(intervalMs, streamingRefreshMs) : intervalMs)
    }
    const onVisibility = () => {
      if (document.hidden) clearTimeout(timer)
      else void run()
    }
    const onChanged = () => {
      if (hasChanged || document.hidden) return
      hasChanged = true
      if (!isLoading) runIn(pauseMs)
    }
    reloadRef.current = () => void run()
    document.addEventListener('visibilitychange', onVisibility)
    const unsubscribe = intervalMs > 0 ? onChange(onChanged) : undefined
    const stopWaiting = isDeleting.subscribe((isUnderWay) => {
      if (isUnderWay) {
        clearTimeout(timer)
        controller.abort()
        isLoading ||= intervalMs > 0
        return
      }
      // The first time, and after a deletion. Not at once: what called for the deletion shows another screen first.
      if (isLoading) runIn(0)
    })
    return () => {
      stopWaiting()
      document.removeEventListener('visibilitychange', onVisibility)
      unsubscribe?.()
      clearTimeout(timer)
      controller.abort()
    }
  }, [key, intervalMs])

  const current: State<Data> = state.key === key ? state : { key }
  return {
    ...(current.data !== undefined && { data: current.data }),
    ...(current.error && { error: current.error }),
    ...(current.loadedAt !== undefined && { loadedAt: current.loadedAt }),
    isKept: intervalMs > 0,
    reload: () => reloadRef.current(),
  }
}
