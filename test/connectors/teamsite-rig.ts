import { createEntraTokens } from '../../src/connectors/entra-token.ts'
import { createTeamsite } from '../../src/connectors/teamsite.ts'
import { microsoftClouds } from '../../src/connectors/teamsite-target.ts'
import { createAuthority } from '../support/certificates.ts'
import { startGraphDouble } from '../support/graph-double.ts'

export type TeamsiteRig = Awaited<ReturnType<typeof startTeamsiteRig>>

/** The connector as it is, only that Microsoft's hosts are those of a double. */
export const teamsiteAt = (root: string, scope: string) => {
  const cloud = { authorityHost: root, graphRoot: root, scope }
  const clouds = Object.fromEntries(Object.keys(microsoftClouds).map((name) => [name, cloud])) as typeof microsoftClouds
  return createTeamsite(createEntraTokens(), clouds)
}

export const startTeamsiteRig = async () => {
  const authority = await createAuthority()
  const double = await startGraphDouble(await authority.issue('DNS:localhost,IP:127.0.0.1'))
  const connectorAt = (port?: number) => teamsiteAt(double.rootAt(port), double.scope)
  const connector = connectorAt()
  const target = (config: object = {}, credentials: object = {}) => ({
    config: connector.config.parse({
      site_url: double.siteUrl,
      document_library: 'Documents',
      folder: 'From the relay',
      ca_certificate: authority.certificate,
      ...config,
    }),
    credentials: connector.credentials.parse({
      tenant_id: double.application.tenantId,
      client_id: double.application.clientId,
      client_secret: double.application.clientSecret,
      ...credentials,
    }),
  })
  return {
    double,
    connector,
    connectorAt,
    target,
    reset: () => {
      double.items.clear()
      double.sessions.clear()
      double.faults.length = 0
      double.asked.length = 0
    },
    stop: async () => {
      await double.stop()
      await authority.remove()
    },
  }
}
