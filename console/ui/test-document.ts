import { useState } from 'preact/hooks'
import { call, toApiError, type ApiError, type Schemas } from '../api.ts'
import { html } from '../html.ts'
import { inLanguage } from '../preferences.ts'
import * as startCatalogue from '../texts/start.ts'
import { announce, ErrorNotice, Notice } from './parts.ts'

/** Sends a test document to a repository. @param onSent called when the relay has stored it */
export const useTestDocument = (onSent: () => void = () => {}) => {
  const words = inLanguage(startCatalogue)
  const [state, setState] = useState<{ isBusy: boolean; documentId?: string; error?: ApiError }>({ isBusy: false })
  const send = async (repositoryId: string) => {
    setState({ isBusy: true })
    try {
      const { data } = await call<Schemas['TestDocumentResponse']>('POST', `/repositories/${repositoryId}/test-document`)
      setState({ isBusy: false, documentId: data.document_id })
      announce(words.sent)
      onSent()
    } catch (thrown) {
      setState({ isBusy: false, error: toApiError(thrown) })
    }
  }
  return { state, send }
}

/** Leads to the test document that was sent, or says why it was not. */
export const SentTestDocument = ({ state: { documentId, error } }: { state: ReturnType<typeof useTestDocument>['state'] }) => {
  const words = inLanguage(startCatalogue)
  if (error) return html`<${ErrorNotice} error=${error} />`
  if (documentId === undefined) return null
  return html`<${Notice} tone="good">${words.sent} <a href=${`documents/${documentId}`}>${words.toDocument}</a></${Notice}>`
}
