import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { call, may, session, sessionError, signOut, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { language, languages, locale, setLanguage, setTheme, texts, theme, type Language, type Theme } from '../preferences.ts'
import { addressOf, isFirst, navigate, route } from '../router.ts'
import { entries, entryOf, preloadScreens, screenNamed, tabsOf, type ScreenName } from '../screens.ts'
import { SignIn } from '../screens/sign-in.ts'
import { chooseWorkspace, linkedWorkspace, nameOfWorkspace } from '../workspace-choice.ts'
import { Announcer, ErrorNotice, ErrorText, Heading, Notice } from './parts.ts'
import { RelayNotice } from './relay-notice.ts'

const Preferences = () => {
  const { app } = texts()
  return html`<div class="preferences">
    <label
      ><span>${app.language}</span>
      <select value=${language.value} onChange=${(event: Event) => setLanguage((event.target as HTMLSelectElement).value as Language)}>
        ${Object.entries(languages).map(([code, name]) => html`<option key=${code} value=${code} lang=${code}>${name}</option>`)}
      </select></label
    >
    <label
      ><span>${app.theme}</span>
      <select value=${theme.value} onChange=${(event: Event) => setTheme((event.target as HTMLSelectElement).value as Theme)}>
        ${Object.entries(app.themes).map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
      </select></label
    >
  </div>`
}

const Brand = () =>
  html`<span class="brand"
    ><svg viewBox="0 0 32 32" aria-hidden="true">
      <path d="M7 16h8m0 0c4 0 4-7 8-7m-8 7c4 0 4 7 8 7" />
      <circle cx="7" cy="16" r="3" />
      <circle cx="25" cy="9" r="3" />
      <circle cx="25" cy="23" r="3" /></svg
    >Document Relay</span
  >`

const editable = 'input, select, textarea, [contenteditable]'

/** Leads from every screen to the documents that a text finds. The key / leads to the field. */
const DocumentSearch = () => {
  const { app } = texts()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
      if ((event.target as Element).closest(`${editable}, dialog`)) return
      event.preventDefault()
      field.current?.focus()
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [])
  const submit = (event: Event) => {
    event.preventDefault()
    const input = field.current!
    const q = input.value.trim()
    if (q === '') return
    input.value = ''
    navigate(addressOf('documents', { q }))
  }
  return html`<search aria-label=${app.findDocuments}>
    <form onSubmit=${submit}>
      <input
        ref=${field}
        type="search"
        maxlength="255"
        aria-label=${app.findDocuments}
        aria-keyshortcuts="/"
        placeholder=${`${app.findDocuments}  /`}
      />
    </form>
  </search>`
}

/** The number of documents that need attention. */
const AttentionCount = () => {
  const { app } = texts()
  const live = useLive(`attention of ${nameOfWorkspace(session.value!)}`, (signal) =>
    // Any hour: what is counted is the present.
    call<Schemas['StatsResponse']>('GET', '/stats', { query: { date_from: new Date().toISOString() }, signal }),
  )
  const { unacknowledged_failures: failures, unacknowledged_discards: discards } = live.data?.data.attributes.present ?? {}
  const count = (failures ?? 0) + (discards ?? 0)
  if (count === 0) return null
  return html`<span class="count" title=${app.documents(count)}
    ><span aria-hidden="true">${count.toLocaleString(locale())}</span><span class="visually-hidden">${app.documents(count)}</span></span
  >`
}

/** Who is signed in, where, and what concerns the person rather than the screen. A person may change the workspace here. */
const Account = () => {
  const { app } = texts()
  const { workspaces, level, person } = session.value!
  const current = nameOfWorkspace(session.value!)
  const names = workspaces.map(nameOfWorkspace)
  const [error, setError] = useState<ApiError>()
  const leave = () => signOut().catch((thrown: unknown) => setError(toApiError(thrown)))
  return html`<div class="account">
    ${
      names.length > 1 &&
      html`<label class="workspace"
          ><span>${app.workspace}</span>
          <select value=${current} onChange=${(event: Event) => chooseWorkspace((event.target as HTMLSelectElement).value)}>
            ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
          </select></label
        >
        <p><a href="workspaces">${app.allWorkspaces}</a></p>`
    }
    <details>
      <summary>
        ${names.length === 1 && html`<span class="visually-hidden">${app.workspace}: </span><strong>${current}</strong>`}
        <span class=${names.length === 1 ? 'small' : ''}>${person?.name ?? app.account}</span>
      </summary>
      <p class="small">${app.level[level]}</p>
      <${Preferences} />
      <p><a href="../docs/" target="_blank" rel="noreferrer">${app.documentation}</a></p>
      <button type="button" class="button" onClick=${() => void leave()}>${app.signOut}</button>
      ${error && html`<p class="problem" role="alert"><${ErrorText} error=${error} /></p>`}
    </details>
  </div>`
}

const Sidebar = ({ current }: { current: string }) => {
  const { app, screens: names } = texts()
  const [isOpen, setOpen] = useState(false)
  const here = route.value
  useLayoutEffect(() => setOpen(false), [here])
  return html`<header class=${`sidebar ${isOpen ? 'open' : ''}`}>
    <div class="top">
      <${Brand} />
      <button type="button" class="button menu-button" aria-expanded=${isOpen} aria-controls="menu" onClick=${() => setOpen(!isOpen)}>
        ${app.menu}
      </button>
    </div>
    <${DocumentSearch} />
    <div id="menu" class="menu">
      <nav aria-label=${app.navigation}>
        ${entries().map(
          (screen) =>
            html`<a key=${screen} href=${screen} aria-current=${screen === entryOf(current) ? 'page' : undefined}
              ><svg class="mark" viewBox="0 0 16 16" aria-hidden="true"><path d=${screenNamed(screen)!.icon} /></svg
              >${screen === 'settings' ? app.administration : names[screen]}${screen === 'attention' && html`<${AttentionCount} />`}</a
            >`,
        )}
      </nav>
      <${Account} />
    </div>
  </header>`
}

/** Links between the screens that share an entry of the navigation. */
const Tabs = ({ current }: { current: string }) => {
  const { app, screens: names } = texts()
  const tabs = tabsOf(current)
  if (tabs.length === 0) return null
  return html`<nav class="tabs" aria-label=${app.tabs}>
    ${tabs.map((name) => html`<a key=${name} href=${name} aria-current=${name === current ? 'page' : undefined}>${names[name]}</a>`)}
  </nav>`
}

const NotFound = () =>
  html`<${Heading} title=${texts().app.notFound} />
    <p><a href="documents">${texts().app.toDocuments}</a></p>`

/** Says that the link of the first screen leads to a workspace that this session does not show. */
const OtherWorkspaceNotice = () => {
  const [shown, linked] = [nameOfWorkspace(session.value!), linkedWorkspace.value]
  if (linked === undefined || linked === shown || !isFirst()) return null
  return html`<${Notice} tone="warn">${texts().app.otherWorkspace(linked, shown)}</${Notice}>`
}

/** Stands in place of a screen that the key of the session may not see. */
const NotAllowed = ({ name }: { name: ScreenName }) => {
  const { app, screens: names } = texts()
  return html`<${Heading} title=${names[name]} /> <${Notice} tone="info">${app.onlyAdministrators}</${Notice}>`
}

const Screen = ({ path }: { path: string }) => {
  const [name = '', id, ...rest] = path.split('/')
  const screen = screenNamed(name)
  if (screen && !may(screen.level ?? 'viewer')) return html`<${NotAllowed} name=${name} />`
  if (screen && id === undefined) return html`<${Tabs} current=${name} /><${screen.List} />`
  if (screen?.One && id !== undefined && rest.length === 0) return html`<${screen.One} key=${id} id=${id} />`
  return html`<${NotFound} />`
}

// The first screen has been shown by then.
const preloadAfterMs = 2_000

/** Returns whether the browser is set to load no more than it needs. Firefox and Safari do not say. */
const savesData = (): boolean => (navigator as { connection?: { saveData?: boolean } }).connection?.saveData === true

const Signed = () => {
  const { path } = route.value
  useEffect(() => {
    // While the relay is away, or of another version, a screen could not be loaded.
    const timer = savesData() ? undefined : setTimeout(() => void preloadScreens(), preloadAfterMs)
    return () => clearTimeout(timer)
  }, [])
  useEffect(() => {
    if (path === '') navigate('overview', { replace: true })
  }, [path])
  if (path === '') return null
  return html`<a class="skip" href="#main" onClick=${skip}>${texts().app.skip}</a>
    <div class="layout">
      <${Sidebar} current=${path.split('/')[0]} />
      <main id="main" tabindex="-1"><${RelayNotice} /><${OtherWorkspaceNotice} /><${Screen} path=${path} /></main>
    </div>
    <${Announcer} />`
}

// A link to a fragment would resolve against the base address, which is another page.
const skip = (event: Event) => {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

const Waiting = ({ error }: { error: ApiError }) => {
  const { app, common } = texts()
  useEffect(() => {
    document.title = `${app.waiting} · Document Relay`
  }, [app])
  return html`<main class="sign-in">
    <${Brand} /><${Preferences} />
    <div class="card">
      <h1>${app.waiting}</h1>
      <${ErrorNotice} error=${error} />
      <p>${common.keepsTrying}</p>
    </div>
  </main>`
}

export const App = () => {
  const current = session.value
  if (current === undefined) return sessionError.value ? html`<${Waiting} error=${sessionError.value} />` : null
  if (current === null) return html`<${SignIn}><${Brand} /><${Preferences} /></${SignIn}>`
  return html`<${Signed} />`
}
