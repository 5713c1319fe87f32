import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { readSecretKeys } from './seal.ts'

/** A document that was mailed to a destination as a link. */
export interface LinkedDownload {
  workspaceId: string
  documentId: string
  destinationId: string
  /** The version of the destination's links. The link is valid while the destination has the same version. */
  version: number
}

/** Values that the signature of a link covers. */
export interface SignedDownload extends LinkedDownload {
  expiresAt: Date
}

const purpose = 'document-relay download link v2'

const signatureOf = (key: Buffer, { workspaceId, documentId, destinationId, version, expiresAt }: SignedDownload): string =>
  createHmac('sha256', key)
    .update(JSON.stringify([workspaceId, documentId, destinationId, version, expiresAt.getTime()]))
    .digest('base64url')

const linkPath = /^\/download\/([0-9A-Z]{26})\/([0-9A-Z]{26})\/([0-9A-Z]{26})$/
// Milliseconds from 2001 to 2286. Numbers of another form are refused, so that each link has one form only.
const milliseconds = /^[1-9]\d{12}$/
const versionNumber = /^[1-9]\d{0,8}$/
const signatureText = /^[\w-]{43}$/

/**
 * Creates and verifies links that give access to a document for a limited time without an API key. The signing keys are
 * derived from RELAY_SECRET_KEYS and rotate with them: the first key signs, all keys verify.
 * @param entries the entries of RELAY_SECRET_KEYS
 */
export const createDownloadLinks = (entries: readonly string[]) => {
  const derive = (key: Buffer) => Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
  const [[, first], ...others] = readSecretKeys(entries)
  const signingKey = derive(first)
  const keys = [signingKey, ...others.map(([, key]) => derive(key))]

  return {
    /** Returns the path and query of a link. */
    pathOf: (download: SignedDownload): string => {
      const { workspaceId, documentId, destinationId, version, expiresAt } = download
      const query = `expires=${expiresAt.getTime()}&version=${version}&signature=${signatureOf(signingKey, download)}`
      return `/download/${workspaceId}/${documentId}/${destinationId}?${query}`
    },

    /**
     * Reads the path and query of a link. Does not check that the link has expired or was revoked.
     * @returns undefined if they are not exactly those of a link that `pathOf` has created
     */
    read: (path: string, { expires, version, signature, ...more }: Record<string, unknown>): SignedDownload | undefined => {
      const [, workspaceId, documentId, destinationId] = linkPath.exec(path) ?? []
      if (workspaceId === undefined || documentId === undefined || destinationId === undefined || Object.keys(more).length > 0)
        return undefined
      if (!matches(expires, milliseconds) || !matches(version, versionNumber) || !matches(signature, signatureText)) return undefined
      const download = { workspaceId, documentId, destinationId, version: Number(version), expiresAt: new Date(Number(expires)) }
      // `filter` compares all keys, so that the duration does not reveal the key that matched.
      const valid = keys.filter((key) => timingSafeEqual(Buffer.from(signatureOf(key, download)), Buffer.from(signature)))
      return valid.length > 0 ? download : undefined
    },
  }
}

const matches = (value: unknown, form: RegExp): value is string => typeof value === 'string' && form.test(value)

export type DownloadLinks = ReturnType<typeof createDownloadLinks>

/** Returns a function that creates the download URL of a mailed document, or `undefined` if the base URL is unknown. */
export const createDownloadUrl =
  (links: DownloadLinks, { baseUrl, ttlMs }: { baseUrl: string | undefined; ttlMs: number }) =>
  (download: LinkedDownload): string | undefined => {
    if (baseUrl === undefined) return undefined
    return baseUrl.replace(/\/+$/, '') + links.pathOf({ ...download, expiresAt: new Date(Date.now() + ttlMs) })
  }
