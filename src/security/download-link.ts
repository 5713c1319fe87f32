import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { readSecretKeys } from './seal.ts'

/** What is proven by a link: who may fetch what, until when. */
interface SignedDownload {
  workspaceId: string
  documentId: string
  expiresAt: Date
}

const purpose = 'document-relay download link v1'

const signatureOf = (key: Buffer, { workspaceId, documentId, expiresAt }: SignedDownload): Buffer =>
  createHmac('sha256', key)
    .update(JSON.stringify([workspaceId, documentId, expiresAt.getTime()]))
    .digest()

/**
 * Links by which a document can be fetched for a time without an API key. They are signed under keys derived from those that seal
 * credentials, so rotating works as it does there: the first key signs, all of them verify.
 * @param entries as RELAY_SECRET_KEYS holds them
 */
export const createDownloadLinks = (entries: readonly string[]) => {
  const derive = (key: Buffer) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
  const [[, first], ...others] = readSecretKeys(entries)
  const signingKey = derive(first)
  const keys = [signingKey, ...others.map(([, key]) => derive(key))]

  return {
    /** The address below the base URL. */
    pathOf: (download: SignedDownload): string => {
      const signature = signatureOf(signingKey, download).toString('base64url')
      return `/download/${download.workspaceId}/${download.documentId}?expires=${download.expiresAt.getTime()}&signature=${signature}`
    },

    /** Whether the signature is one of ours; the time is not looked at. */
    verify: (download: SignedDownload, signature: string): boolean => {
      const given = Buffer.from(signature, 'base64url')
      // each one compared, so that the time taken tells nothing of which key it was
      return keys.filter((key) => given.length === 32 && timingSafeEqual(signatureOf(key, download), given)).length > 0
    },
  }
}

export type DownloadLinks = ReturnType<typeof createDownloadLinks>

/** How the address of a document is made up; undefined where nobody knows how we are reached. */
export const createDownloadUrl =
  (links: DownloadLinks, { baseUrl, ttlMs }: { baseUrl: string | undefined; ttlMs: number }) =>
  (workspaceId: string, documentId: string): string | undefined => {
    if (baseUrl === undefined) return undefined
    return baseUrl.replace(/\/+$/, '') + links.pathOf({ workspaceId, documentId, expiresAt: new Date(Date.now() + ttlMs) })
  }
