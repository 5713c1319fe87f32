import { useState } from 'preact/hooks'
import { apiUrl, callRaw, toApiError, type ApiError } from '../api.ts'
import { hexDump, kindOf, partsOf, textOf } from '../bytes.ts'
import { formatBytes } from '../format.ts'
import { html } from '../html.ts'
import { useLive } from '../live.ts'
import { inLanguage, locale } from '../preferences.ts'
import { pretty } from '../pretty.ts'
import * as bodyCatalogue from '../texts/body.ts'
import { ErrorNotice, Loaded } from './parts.ts'
import { Redacted } from './redacted.ts'

const textMaxBytes = 64 * 1_024
const hexMaxBytes = 512
const imageMaxBytes = 10 * 1_024 * 1_024

/** Reads the beginning of a body. Captured bodies are not served in ranges: reading stops where enough has been read. */
const readStart = async (path: string, signal: AbortSignal): Promise<Uint8Array> => {
  const { body } = await callRaw('GET', path, { signal, headers: { range: `bytes=0-${textMaxBytes - 1}` } })
  const bytes = new Uint8Array(textMaxBytes)
  let length = 0
  if (!body) return bytes.subarray(0, 0)
  const reader = body.getReader()
  while (length < textMaxBytes) {
    const { done, value } = await reader.read()
    if (done) break
    const kept = value.subarray(0, textMaxBytes - length)
    bytes.set(kept, length)
    length += kept.length
  }
  await reader.cancel()
  return bytes.subarray(0, length)
}

interface Shown {
  bytes: Uint8Array
  contentType: string
  /** True if secrets may have been removed from the bytes. */
  isCaptured: boolean
}

/** Bytes as text, or as numbers if they are not text. */
const Bytes = ({ bytes, contentType, isCaptured }: Shown) => {
  const words = inLanguage(bodyCatalogue)
  const text = textOf(bytes, contentType)
  if (text !== undefined) {
    const shown = pretty(text, contentType)
    return html`<pre class="code tall" tabindex="0">${isCaptured ? html`<${Redacted} text=${shown} />` : shown}</pre>`
  }
  return html`<p class="small">${words.hex}</p>
    <pre class="code tall hex" tabindex="0">${hexDump(bytes.subarray(0, hexMaxBytes))}</pre>`
}

const Parts = ({ bytes, contentType, isCaptured }: Shown) => {
  const words = inLanguage(bodyCatalogue)
  const parts = partsOf(bytes, contentType)
  if (parts.length === 0) return html`<${Bytes} bytes=${bytes} contentType=${contentType} isCaptured=${isCaptured} />`
  return parts.map(({ headers, body }, index) => {
    const type = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
    return html`<section key=${index} class="part">
      <h4>${words.part(index + 1)}</h4>
      <pre class="code" tabindex="0">${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
      <${Bytes} bytes=${body} contentType=${type} isCaptured=${isCaptured} />
    </section>`
  })
}

const Start = ({ path, contentType, sizeBytes, isCaptured, gone }: Body) => {
  const live = useLive(path, (signal) => readStart(path, signal), 0)
  if (gone !== undefined && live.error?.status === 404) return html`<p class="quiet">${gone}</p>`
  return html`<${Loaded} live=${live}>
    ${() => {
      const bytes = live.data!
      const View = kindOf(contentType) === 'multipart' ? Parts : Bytes
      // A captured body may be shorter than its declared size, because secrets were removed.
      const isCut = bytes.length === textMaxBytes && sizeBytes > textMaxBytes
      return html`<${View} bytes=${bytes} contentType=${contentType} isCaptured=${isCaptured} />
        ${isCut && html`<p class="small">${inLanguage(bodyCatalogue).cut(formatBytes(textMaxBytes, locale()))}</p>`}`
    }}
  </${Loaded}>`
}

/** Opens the PDF in the viewer of the browser. The type is ours, so that the bytes can be nothing else. */
const openPdf = async (path: string) => {
  const bytes = await (await callRaw('GET', path)).arrayBuffer()
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/pdf' }))
  open(url, '_blank', 'noopener')
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

const Pdf = ({ path }: { path: string }) => {
  const [error, setError] = useState<ApiError>()
  const show = () => openPdf(path).catch((thrown: unknown) => setError(toApiError(thrown)))
  return html`${error && html`<${ErrorNotice} error=${error} />`}
    <button type="button" class="button" onClick=${() => void show()}>${inLanguage(bodyCatalogue).openPdf}</button>`
}

interface Body {
  /** Path of the bytes in the API. */
  path: string
  contentType: string
  sizeBytes: number
  /** Names the bytes to people who do not see a picture. */
  name: string
  isCaptured: boolean
  /** Said if the bytes are no longer stored. */
  gone?: string
}

/**
 * Shows bytes that a source system or a target has sent, by their type: text, a picture, a PDF by a button, or the first bytes. Nothing of
 * them runs in the page.
 */
export const BodyViewer = (body: Body) => {
  const words = inLanguage(bodyCatalogue)
  const { path, contentType, sizeBytes, name } = body
  const kind = kindOf(contentType)
  if (kind === 'pdf') return html`<${Pdf} path=${path} />`
  if (kind !== 'image') return html`<${Start} ...${body} />`
  if (sizeBytes > imageMaxBytes) return html`<p class="quiet">${words.tooLarge(formatBytes(imageMaxBytes, locale()))}</p>`
  return html`<img class="preview" src=${apiUrl(path).href} alt=${words.imageOf(name)} />`
}
