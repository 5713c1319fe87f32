// Small parts that every screen uses.
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { toApiError, type ApiError, type ErrorDetail } from '../api.ts'
import { formatRelative, formatTime } from '../format.ts'
import { html, type Children } from '../html.ts'
import { language, locale, texts } from '../preferences.ts'
import { addressOf, isFirst, route } from '../router.ts'

const marks: Record<string, string> = {
  delivered: 'M3 8.500l3.500 3.500 6.500-8',
  active: 'M3 8.500l3.500 3.500 6.500-8',
  closed: 'M3 8.500l3.500 3.500 6.500-8',
  connected: 'M3 8.500l3.500 3.500 6.500-8',
  healthy: 'M3 8.500l3.500 3.500 6.500-8',
  failed: 'M4 4l8 8M12 4l-8 8',
  failing: 'M4 4l8 8M12 4l-8 8',
  paused: 'M6 4v8M10 4v8',
  trying: 'M12.500 6.500a5 5 0 1 0 .3 3M12.800 3v3.500H9.300',
  permanent: 'M4 4l8 8M12 4l-8 8',
  retrying: 'M12.500 6.500a5 5 0 1 0 .3 3M12.800 3v3.500H9.300',
  retryable: 'M12.500 6.500a5 5 0 1 0 .3 3M12.800 3v3.500H9.300',
  pending: 'M8 4v4l2.500 2',
  held: 'M6 4v8M10 4v8',
  '2xx': 'M3 8.500l3.500 3.500 6.500-8',
  complete: 'M3 8.500l3.500 3.500 6.500-8',
  done: 'M3 8.500l3.500 3.500 6.500-8',
  waiting: 'M8 4v4l2.500 2',
  '4xx': 'M8 3v6.500M8 12.500v.3',
  '5xx': 'M4 4l8 8M12 4l-8 8',
}
const noMark = 'M4 8h8'

const tones: Record<string, string> = {
  delivered: 'good',
  connected: 'good',
  healthy: 'good',
  active: 'good',
  closed: 'good',
  failed: 'bad',
  failing: 'bad',
  paused: 'bad',
  complete: 'good',
  done: 'good',
  partial: 'warn',
  incomplete: 'warn',
  waiting: 'info',
  trying: 'warn',
  permanent: 'bad',
  open: 'bad',
  retrying: 'warn',
  retryable: 'warn',
  interrupted: 'warn',
  half_open: 'warn',
  held: 'warn',
  pending: 'info',
  '2xx': 'good',
  '4xx': 'warn',
  '5xx': 'bad',
}

/** Returns the tone of a status: good, bad, warn, info or quiet. */
export const toneOf = (status: string): string => tones[status] ?? 'quiet'

/** The mark of a status, for those who do not see its colour. */
export const Mark = ({ status }: { status: string }) =>
  html`<svg class="mark" viewBox="0 0 16 16" aria-hidden="true"><path d=${marks[status] ?? noMark} /></svg>`

/** A status as colour, mark and word. */
export const Badge = ({ status, label }: { status: string; label: string }) =>
  html`<span class=${`badge ${toneOf(status)}`}><${Mark} status=${status} />${label}</span>`

const clock = signal(Date.now())
setInterval(() => {
  if (!document.hidden) clock.value = Date.now()
}, 10_000)

/**
 * A time as the distance from now; its title is the exact time. The clock of the browser may be behind that of the relay: unless the time is
 * planned, it is not shown as one to come.
 */
export const Time = ({ at, isPlanned = false }: { at: string; isPlanned?: boolean }) => {
  const now = isPlanned ? clock.value : Math.max(clock.value, Date.parse(at))
  return html`<time datetime=${at} title=${formatTime(at, locale())}>${formatRelative(at, now, locale())}</time>`
}

export const ExactTime = ({ at }: { at: string }) => html`<time datetime=${at}>${formatTime(at, locale())}</time>`

const announcement = signal('')
const announcementMs = 6_000
let forgetting: ReturnType<typeof setTimeout> | undefined
/** Says for some seconds what has happened. Screen readers speak it. */
export const announce = (text: string) => {
  announcement.value = text
  clearTimeout(forgetting)
  forgetting = setTimeout(() => (announcement.value = ''), announcementMs)
}
export const Announcer = () => html`<div class="announcer" role="status" aria-live="polite">${announcement.value}</div>`

/** Stands where something will be shown. */
export const Skeleton = () =>
  html`<div class="loading" role="status"><span class="visually-hidden">${texts().common.loading} …</span><i></i><i></i><i></i></div>`

/** An id with a button that copies it. */
export const Copyable = ({ text }: { text: string }) => {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    announce(texts().common.copied)
    setTimeout(() => setCopied(false), 2_000)
  }
  // Browsers offer the clipboard to pages over TLS and on localhost only.
  const canCopy = 'clipboard' in navigator
  return html`<span class="copyable"
    ><span class="mono">${text}</span>${
      canCopy &&
      html`<button type="button" class="icon-button" aria-label=${`${texts().common.copy}: ${text}`} onClick=${() => void copy()}>
        <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
          <path d=${isCopied ? marks['delivered'] : 'M6 5.500h6.500v8H6zM3.500 10.500v-8H10'} />
        </svg>
      </button>`
    }</span
  >`
}

export const Notice = ({ tone, children }: { tone: 'bad' | 'warn' | 'good' | 'info'; children?: Children }) =>
  html`<div class=${`notice ${tone}`} role=${tone === 'bad' ? 'alert' : 'status'}>${children}</div>`

/** Says what an error means, and what the relay says beside that. Its messages are English. */
export const ErrorText = ({ error }: { error: ApiError }) => {
  const { status, code, message } = error
  const { common } = texts()
  if (status <= 0) return status === 0 ? common.offline : common.unknownError
  const { text, lang, more } = error.texts?.[language.value].explain(code, message) ?? { text: message, lang: 'en' }
  return html`<span lang=${lang}>${text}</span>${more !== undefined && html` <span class="detail" lang="en">${more}</span>`}`
}

/** Lists the values that are wrong. */
export const ErrorDetails = ({ details }: { details: readonly ErrorDetail[] }) =>
  details.length > 0 &&
  html`<ul class="problems" lang="en">
    ${details.map(({ path, message }) => html`<li key=${path + message}><code>${path}</code> ${message}</li>`)}
  </ul>`

export const ErrorNotice = ({ error, reload }: { error: ApiError; reload?: (() => void) | undefined }) =>
  html`<${Notice} tone="bad">
    <p><${ErrorText} error=${error} /></p>
    ${
      error.nothingChanged !== undefined &&
      html`<p>${error.nothingChanged ? texts().common.nothingChanged : texts().common.maybeChanged}</p>`
    }
    <${ErrorDetails} details=${error.details} />
    ${error.requestId !== undefined && html`<p class="small">${texts().common.requestId(error.requestId)}</p>`}
    ${reload && html`<button type="button" class="button" onClick=${reload}>${texts().common.again}</button>`}
  </${Notice}>`

interface Loadable {
  data?: unknown
  error?: ApiError
  loadedAt?: number
  isKept: boolean
  reload(): void
}

/** Returns true for a refusal, which asking again does not change. */
const isFinal = ({ status }: ApiError) => status >= 400 && status < 500

/** Shows data and, if they could not be updated, of when they are; or that they are loading, or why they cannot be loaded. */
export const Loaded = ({ live, children }: { live: Loadable; children: () => Children }) => {
  const { data, error, loadedAt = 0, isKept } = live
  const { common } = texts()
  const hasFailed = useRef(false)
  useEffect(() => {
    if (hasFailed.current && !error) announce(common.upToDate)
    hasFailed.current = error !== undefined
  }, [error])
  const keepsTrying = isKept && error && !isFinal(error) ? common.keepsTrying : ''
  if (data === undefined) {
    if (!error) return html`<${Skeleton} />`
    return html`<${ErrorNotice} error=${error} reload=${live.reload} /> ${keepsTrying !== '' && html`<p>${keepsTrying}</p>`}`
  }
  const asOf = common.stale(formatTime(new Date(loadedAt).toISOString(), locale()))
  return html`${error && html`<${Notice} tone="warn"><${ErrorText} error=${error} /> ${asOf} ${keepsTrying}</${Notice}>`}${children()}`
}

/** A card that is closed at first. @param children drawn when it is opened */
export const Disclosure = ({ title, children }: { title: string; children: () => Children }) => {
  const [isOpen, setOpen] = useState(false)
  return html`<details class="card" onToggle=${(event: Event) => setOpen((event.target as HTMLDetailsElement).open)}>
    <summary><h2>${title}</h2></summary>
    ${isOpen && children()}
  </details>`
}

/** The heading of a screen, which gets the focus when a link has led to the screen. */
export const Heading = ({ title, children }: { title: string; children?: Children }) => {
  const ref = useRef<HTMLHeadingElement>(null)
  // A layout effect: a later one would take the focus from a field that is already in use.
  useLayoutEffect(() => {
    if (!isFirst()) ref.current?.focus()
  }, [])
  useEffect(() => {
    document.title = `${title} · Document Relay`
  }, [title])
  return html`<header class="heading">
    <h1 tabindex="-1" ref=${ref}>${title}</h1>
    ${children}
  </header>`
}

/** Asks before something is done. */
export const Confirm = ({
  title,
  action,
  isDestructive = false,
  onConfirm,
  onClose,
  children,
}: {
  title: string
  action: string
  /** The action deletes something for good. */
  isDestructive?: boolean
  onConfirm: () => Promise<void>
  onClose: () => void
  children?: Children
}) => {
  const ref = useRef<HTMLDialogElement>(null)
  const [state, setState] = useState<{ isBusy: boolean; error?: ApiError }>({ isBusy: false })
  useLayoutEffect(() => ref.current?.showModal(), [])
  const confirm = async () => {
    setState({ isBusy: true })
    try {
      await onConfirm()
      onClose()
    } catch (thrown) {
      setState({ isBusy: false, error: toApiError(thrown) })
    }
  }
  return html`<dialog ref=${ref} aria-labelledby="confirm-title" onClose=${onClose}>
    <h2 id="confirm-title">${title}</h2>
    ${children} ${state.error && html`<${ErrorNotice} error=${state.error} />`}
    <div class="actions">
      <button type="button" class="button" onClick=${() => ref.current?.close()}>${texts().common.cancel}</button>
      <button
        type="button"
        class=${`button ${isDestructive ? 'danger' : 'primary'}`}
        disabled=${state.isBusy}
        onClick=${() => void confirm()}
      >
        ${action}
      </button>
    </div>
  </dialog>`
}

/** Links to the previous and the next page. @param addressOfPage address of a page by its number */
export const Pager = ({
  page,
  perPage,
  total,
  addressOfPage,
}: {
  page: number
  perPage: number
  total: number
  addressOfPage: (page: number) => string
}) => {
  const { pager } = texts()
  const last = Math.max(1, Math.ceil(total / perPage))
  const link = (to: number, label: string, mark: string) =>
    to < 1 || to > last
      ? html`<span class="button" aria-hidden="true"
          ><svg class="mark" viewBox="0 0 16 16"><path d=${mark} /></svg
        ></span>`
      : html`<a class="button" href=${addressOfPage(to)} aria-label=${label}
          ><svg class="mark" viewBox="0 0 16 16" aria-hidden="true"><path d=${mark} /></svg
        ></a>`
  if (total === 0) return null
  return html`<nav class="pager" aria-label=${pager.label}>
    <span>${pager.range(Math.min(total, (page - 1) * perPage + 1), Math.min(total, page * perPage), total)}</span>
    ${link(page - 1, pager.previous, 'M10 3.500L5.500 8l4.500 4.500')} ${link(page + 1, pager.next, 'M6 3.500L10.500 8 6 12.500')}
  </nav>`
}

interface CursorPagerProps {
  path: string
  values?: Record<string, string | undefined>
  next: string | null | undefined
}

/** Links to the first and the next page of a list with a cursor, which the address of the screen has as `before`. */
export const CursorPager = ({ path, values = {}, next }: CursorPagerProps) => {
  const { pager } = texts()
  const before = route.value.query.get('before')
  if (!before && !next) return null
  return html`<nav class="pager" aria-label=${pager.label}>
    ${before && html`<a class="button" href=${addressOf(path, values)}>${pager.first}</a>`}
    ${next && html`<a class="button" href=${addressOf(path, { ...values, before: next })}>${pager.next}</a>`}
  </nav>`
}

/** A table with a heading for each column. In a narrow window, each row is a block. */
export const Table = ({
  label,
  columns,
  isCompact = false,
  children,
}: {
  label: string
  columns: readonly Children[]
  isCompact?: boolean
  children?: Children
}) =>
  html`<table role="table" class=${isCompact ? 'list compact' : 'list'} aria-label=${label}>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((name, index) => html`<th key=${index} role="columnheader" scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${children}
    </tbody>
  </table>`

/** Links of which one is the present. @param of name, label and address of each */
export const Choices = ({ label, current, of }: { label: string; current: string; of: [name: string, label: string, href: string][] }) =>
  html`<nav class="choices" aria-label=${label}>
    ${of.map(([name, text, href]) => html`<a key=${name} href=${href} aria-current=${name === current ? 'true' : undefined}>${text}</a>`)}
  </nav>`

/** Names and values. Entries with an undefined value are left out. */
export const Facts = ({ of }: { of: [name: string, value: Children][] }) =>
  html`<dl class="facts">
    ${of
      .filter(([, value]) => value !== undefined && value !== null)
      .map(
        ([name, value]) =>
          html`<div key=${name}>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
  </dl>`
