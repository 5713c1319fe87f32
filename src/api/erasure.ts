import { notFound } from '../base/refusals.ts'
import type { Erase } from '../delivery/erase.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { DocumentDeps } from './documents.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { idParams } from './schemas.ts'

export interface ErasureDeps extends Pick<LaunchDeps, 'launch'>, Pick<DocumentDeps, 'contents'> {
  erase: Erase
}

export const erasureEndpoints = ({ erase, launch, contents }: ErasureDeps): Endpoint[] => [
  endpoint({
    method: 'DELETE',
    path: '/documents/:id/content',
    level: 'admin',
    audit: 'document.erased',
    summary: 'Erase the content of a document',
    description:
      'Removes the bytes of the document and the captured bodies of every request about its `doc_id`. Deliveries that have not been made ' +
      'are cancelled, and download links end. The document stays in the lists with `content_retained` false. Irreversible.',
    params: idParams,
    response: 'none',
    status: 204,
    handle: async ({ params: { id } }, { workspaceId, actor }) => {
      const erased = await erase(workspaceId, id, actorOf(actor))
      if (!erased) throw notFound()
      launch(erased.messages)
      // The job remove-orphans removes what cannot be removed now.
      for (const { id: contentId, store } of erased.contents) await contents[store]?.remove([contentId]).catch(() => {})
    },
  }),
]
