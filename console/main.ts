import { render } from 'preact'
import { hasLinkFailed, loadSession, sessionError, signInFailure, signInWithLink, toApiError } from './api.ts'
import { html } from './html.ts'
import { addressOf, navigate, route, startRouter } from './router.ts'
import { App } from './ui/shell.ts'
import { takeWorkspace } from './workspace-choice.ts'

startRouter()
const { path, query } = route.value
const rest = takeWorkspace(query)
// It is kept: the address of what is shown next does not name it.
if (rest.size < query.size) navigate(addressOf(path, Object.fromEntries(rest)) + location.hash, { replace: true })
render(html`<${App} />`, document.querySelector('#app')!)

// A link to sign in: browsers do not send the part behind #, and it does not stay in the history.
const token = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1]
signInFailure.value = /^#sign-in-failed=(\w+)$/.exec(location.hash)?.[1]
if (token !== undefined || signInFailure.value !== undefined) history.replaceState(null, '', location.pathname + location.search)

const start = async () => {
  if (token !== undefined) {
    if (await signInWithLink(token)) return
    hasLinkFailed.value = true
  }
  await loadSession()
}

const againMs = 5_000
/** Starts, and tries again until the relay has answered: a form to sign in would look as if the session had ended. */
const keepStarting = () => {
  start().catch((thrown: unknown) => {
    sessionError.value = toApiError(thrown)
    setTimeout(keepStarting, againMs)
  })
}
keepStarting()
