import type { Context, Middleware } from 'koa'
import type { Documents } from '../archive/document-list.ts'
import { AppError } from '../base/errors.ts'
import { methodNotAllowed, nothingHere } from '../base/refusals.ts'
import { fileNameOf } from '../domain/file-name.ts'
import { answerBytes } from '../http/attachments.ts'
import { answerErrors, type ErrorDeps } from '../http/errors.ts'
import { queryOf } from '../http/input.ts'
import type { DownloadLinks } from '../security/download-link.ts'
import { downloadOf, type DocumentDeps } from './documents.ts'

/** Serves the documents that e-mails link to. A valid link grants access without an API key, until its document or destination ends. */
export const createDownloads = ({
  documents,
  contents,
  links,
  ...deps
}: {
  documents: Pick<Documents, 'findLinkedContent'>
  contents: DocumentDeps['contents']
  links: DownloadLinks
} & ErrorDeps): Middleware => {
  const errors = answerErrors(deps, 'download')

  const answer = async (context: Context) => {
    // The URL itself grants access, so it must not be cached or sent as a referrer.
    context.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
    const link = links.read(context.path, queryOf(context))
    if (!link) throw nothingHere()
    if (context.method !== 'GET' && context.method !== 'HEAD') throw methodNotAllowed(context, ['GET', 'HEAD'])
    if (link.expiresAt.getTime() <= Date.now()) throw new AppError('gone', 'This link has expired. Ask the sender for the document.')

    const found = await documents.findLinkedContent(link)
    if (!found) throw new AppError('gone', 'This document is no longer available through this link.')
    const { expiresAt: _expiresAt, ...download } = link
    deps.log.info({ ...download, method: context.method }, 'document downloaded through a link')
    context.status = 200
    await answerBytes(context, downloadOf(contents, found, fileNameOf(found)))
  }

  return (context, next) => {
    if (!context.path.startsWith('/download/')) return next()
    context.state['route'] = '/download'
    return errors(context, () => answer(context))
  }
}
