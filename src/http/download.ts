import type { Context, Middleware } from 'koa'
import type { Database } from '../db/database.ts'
import { createDocuments } from '../db/documents.ts'
import { withExtension } from '../domain/content-type.ts'
import { AppError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { DownloadLinks } from '../security/download-link.ts'
import { answerBytes } from './bytes.ts'
import { downloadOf, type DocumentDeps } from './documents.ts'
import { answerErrors } from './errors.ts'
import { methodNotAllowed, nothingHere } from './faults.ts'

const ownPath = /^\/download\/([0-9A-Z]{26})\/([0-9A-Z]{26})$/

/** The documents that mails link to: whoever holds a signed link that has not run out gets the bytes, and needs no API key. */
export const createDownloads = ({
  db,
  contents,
  links,
  log,
}: {
  db: Database
  contents: DocumentDeps['contents']
  links: DownloadLinks
  log: Log
}): Middleware => {
  const documents = createDocuments(db)
  const errors = answerErrors(log)

  const answer = async (context: Context) => {
    // it holds what gives access: no page it is opened from or leads to is to learn of it
    context.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
    const [, workspaceId, documentId] = ownPath.exec(context.path) ?? []
    const { expires, signature } = context.query
    if (workspaceId === undefined || documentId === undefined || typeof signature !== 'string') throw nothingHere()
    const expiresAt = new Date(Number(expires))
    if (Number.isNaN(expiresAt.getTime()) || !links.verify({ workspaceId, documentId, expiresAt }, signature)) throw nothingHere()
    if (context.method !== 'GET' && context.method !== 'HEAD') throw methodNotAllowed(context, ['GET', 'HEAD'])
    if (expiresAt.getTime() <= Date.now()) throw new AppError('gone', 'This link has run out. Please ask for the document again.')

    const found = await documents.findContent(workspaceId, documentId)
    if (!found) throw new AppError('gone', 'This document is no longer kept.')
    const download = downloadOf(contents, found, withExtension(found.compId, found))
    context.status = 200
    await answerBytes(context, download)
  }

  return (context, next) => {
    if (!context.path.startsWith('/download/')) return next()
    return errors(context, () => answer(context))
  }
}
