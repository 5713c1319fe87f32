import { notFound } from '../base/refusals.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { Destinations } from '../workspace/destinations.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { idParams } from './schemas.ts'

export interface DownloadLinkDeps {
  destinations: Pick<Destinations, 'revokeDownloadLinks'>
}

export const downloadLinkEndpoints = ({ destinations }: DownloadLinkDeps): Endpoint[] => [
  endpoint({
    method: 'POST',
    path: '/destinations/:id/download-links/revoke',
    level: 'admin',
    audit: 'destination.links_revoked',
    summary: 'Revoke download links',
    description:
      'Revokes every download link that was sent to this destination in an e-mail. Links in later e-mails are valid. To revoke the link ' +
      'of one document, erase its content.',
    params: idParams,
    response: 'none',
    status: 204,
    handle: async ({ params }, { workspaceId, actor }) => {
      if (!(await destinations.revokeDownloadLinks(workspaceId, params.id, actorOf(actor)))) throw notFound()
    },
  }),
]
