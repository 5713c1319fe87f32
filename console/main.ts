import { render } from 'preact'
import { hasLinkFailed, loadSession, session, signInWithLink } from './api.ts'
import { html } from './html.ts'
import { startRouter } from './router.ts'
import { App } from './ui/shell.ts'

startRouter()
render(html`<${App} />`, document.querySelector('#app')!)

// A link to sign in: browsers do not send the part behind #, and it does not stay in the history.
const token = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1]
if (token !== undefined) history.replaceState(null, '', location.pathname + location.search)

const start = async () => {
  if (token !== undefined) {
    if (await signInWithLink(token)) return
    hasLinkFailed.value = true
  }
  await loadSession()
}

// Without an answer, the sign-in says what is wrong.
start().catch(() => {
  session.value = null
})
