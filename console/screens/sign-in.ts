import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { hasLinkFailed, provider, sessionEnded, signIn, signInFailure, toApiError, type ApiError } from '../api.ts'
import { html, type Children } from '../html.ts'
import { texts } from '../preferences.ts'
import { addressOf, route } from '../router.ts'
import { ErrorText, Notice } from '../ui/parts.ts'

type Failure = keyof ReturnType<typeof texts>['signIn']['failures']

/** Leads to the provider, and back to the page that was asked for; says why the last attempt has failed. */
const WithProvider = ({ name }: { name: string }) => {
  const { signIn: words } = texts()
  const { path, query } = route.value
  const failure = signInFailure.value
  const explain = failure === undefined ? undefined : (words.failures[failure as Failure] ?? words.failures.failed)
  const to = addressOf(path, Object.fromEntries(query))
  // Without being asked, the provider would name the same person again.
  const as = failure === 'no_access' ? 'another' : undefined
  // With a target, the router leaves the link to the browser.
  return html`${explain && html`<${Notice} tone="bad">${explain(name)}</${Notice}>`}
    <a class="button primary wide" target="_self" href=${addressOf('sign-in/start', { to, as })}>${words.withProvider(name)}</a>
    <p class="divider">${words.or}</p>`
}

/** Asks for an API key, or leads to the provider of people. @param children the brand and the preferences */
export const SignIn = ({ children }: { children: Children }) => {
  const { signIn: words, common } = texts()
  const [key, setKey] = useState('')
  const [isShown, setShown] = useState(false)
  const [state, setState] = useState<{ isBusy: boolean; error?: ApiError }>({ isBusy: false })
  const ref = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (provider.value === undefined) ref.current?.focus()
  }, [])
  useEffect(() => {
    document.title = `${words.title} · Document Relay`
  }, [words])

  const submit = async (event: Event) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      await signIn(key)
    } catch (thrown) {
      setState({ isBusy: false, error: toApiError(thrown) })
      ref.current?.focus()
    }
  }

  return html`<main class="sign-in">
    ${children}
    <form class="card" onSubmit=${submit}>
      <h1>${words.title}</h1>
      ${sessionEnded.value && !state.error && html`<${Notice} tone="warn">${common.sessionEnded}</${Notice}>`}
      ${provider.value === undefined ? html`<p>${words.intro}</p>` : html`<${WithProvider} name=${provider.value} />`}
      ${hasLinkFailed.value && !state.error && html`<${Notice} tone="warn">${words.linkFailed}</${Notice}>`}
      ${state.error && html`<${Notice} tone="bad">${state.error.status === 401 ? words.wrong : html`<${ErrorText} error=${state.error} />`}</${Notice}>`}
      <label for="key">${words.key}</label>
      <div class="joined">
        <input
          id="key"
          ref=${ref}
          class="mono"
          type=${isShown ? 'text' : 'password'}
          autocomplete="current-password"
          spellcheck=${false}
          required
          value=${key}
          onInput=${(event: Event) => setKey((event.target as HTMLInputElement).value)}
        />
        <button type="button" class="button" aria-pressed=${isShown} aria-label=${words.show} onClick=${() => setShown(!isShown)}>
          <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
            <path d="M1.500 8C4 3.500 12 3.500 14.500 8 12 12.500 4 12.500 1.500 8zM8 6.200a1.800 1.800 0 1 0 .01 0z" />
          </svg>
        </button>
      </div>
      <button type="submit" class=${`button wide ${provider.value === undefined ? 'primary' : ''}`} disabled=${state.isBusy}>
        ${words.submit}
      </button>
      <p class="small">${words.help}</p>
    </form>
  </main>`
}
