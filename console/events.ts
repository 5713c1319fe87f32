import { effect, signal } from '@preact/signals'
import { session } from './api.ts'
import { nameOfWorkspace } from './workspace-choice.ts'

type Listener = () => void

// After a refusal, for example because too many pages listen, the browser does not try again by itself.
const againMs = 60_000
// From one screen to the next, the stream stays open.
const lingerMs = 1_000

const listeners = new Set<Listener>()
/** True while the relay tells this page of changes. */
export const isStreaming = signal(false)

let source: EventSource | undefined
let againTimer: ReturnType<typeof setTimeout> | undefined
let lingerTimer: ReturnType<typeof setTimeout> | undefined

const tell = () => {
  for (const listener of listeners) listener()
}

const close = () => {
  clearTimeout(againTimer)
  source?.close()
  source = undefined
  isStreaming.value = false
}

const open = () => {
  if (source || !session.peek() || document.hidden || listeners.size === 0) return
  const url = new URL('events', document.baseURI)
  url.searchParams.set('workspace', nameOfWorkspace(session.peek()!))
  source = new EventSource(url)
  source.addEventListener('open', () => {
    isStreaming.value = true
    // Something may have changed before.
    tell()
  })
  source.addEventListener('change', tell)
  source.addEventListener('error', () => {
    const wasStreaming = isStreaming.value
    isStreaming.value = false
    if (wasStreaming) tell()
    if (source?.readyState !== EventSource.CLOSED) return
    close()
    againTimer = setTimeout(open, againMs)
  })
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) close()
  else open()
})
effect(() => {
  if (session.value) open()
  else close()
})

/** Calls the listener when something of the workspace has changed, at most about once a second. @returns a function that ends it */
export const onChange = (listener: Listener): (() => void) => {
  clearTimeout(lingerTimer)
  listeners.add(listener)
  open()
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) lingerTimer = setTimeout(() => listeners.size === 0 && close(), lingerMs)
  }
}
