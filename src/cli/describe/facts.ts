import { createApiKeys } from '../../access/api-keys.ts'
import { createCertificates } from '../../access/certificates.ts'
import { readSignInSettings } from '../../app/sign-in-file.ts'
import { createLegalHolds } from '../../archive/legal-holds.ts'
import { dayOf } from '../../base/day.ts'
import { markdownText, plainText } from '../../base/text.ts'
import { version } from '../../base/version.ts'
import type { Config } from '../../config/config.ts'
import type { FindConnector } from '../../connectors/connector.ts'
import { maskedConfig, maskedKeys } from '../../connectors/target.ts'
import type { Database } from '../../db/database.ts'
import { createInstallation } from '../../db/installation.ts'
import { connectionSettings } from '../../domain/connection-settings.ts'
import { auditDaysOf, workspaceSettings } from '../../domain/settings.ts'
import { enrichmentKind } from '../../enrichment/enrichments.ts'
import { listHomesInUse } from '../../home/copies.ts'
import { notificationKind } from '../../notifications/notifications.ts'
import { connectionKind } from '../../routing/connections.ts'
import { destinationKind } from '../../routing/destinations.ts'
import { repositoryKind } from '../../routing/repositories.ts'
import { readSecretKeys } from '../../security/seal.ts'
import { findWorkspace } from '../../workspace/administration.ts'
import { createWorkspaces } from '../../workspace/workspaces.ts'

interface FactsDeps {
  config: Config
  findConnector: FindConnector
}

// Said in sentences of their own, or by the documentation.
const unlistedKeys = /^(?:ca_certificate|object_lock_mode|immutability_mode|retain_days|retain_until|legal_hold)$/

const textMaxCharacters = 4_000

/** Returns a text that people have entered, for a line of Markdown. */
const text = (value: unknown): string =>
  markdownText(plainText(typeof value === 'string' ? value : JSON.stringify(value), textMaxCharacters))
    // The sentence may go on with a character of Markdown.
    .replace(/\\$/, String.raw`\\`)
const holdsMax = 1_000

/**
 * Reads what the process description of a workspace says: settings only, and neither credentials nor anything that changes by itself. Every
 * text that people have entered is safe in Markdown.
 * @throws `UserError` if the workspace does not exist, or the file of RELAY_OIDC_FILE cannot be read
 */
export const readFacts = async (db: Database, name: string, { config, findConnector }: FactsDeps) => {
  const { id, userSlug, workspaceSlug } = await findWorkspace(db, name)
  const { settings: stored, tier } = await createWorkspaces(db).findSettings(id)
  const settings = workspaceSettings(stored)
  const repositories = await repositoryKind.listAll(db, id)
  const destinations = await destinationKind.listAll(db, id)
  const signIn = config.RELAY_OIDC_FILE === undefined ? undefined : await readSignInSettings(config.RELAY_OIDC_FILE)
  const holds = await createLegalHolds(db).list(id, { page: 1, perPage: holdsMax })
  const connections = await connectionKind.listAll(db, id)
  const homes = await listHomesInUse(db, id)
  const nameOf = (destinationId: string) => text(destinations.find((each) => each.id === destinationId)?.name ?? destinationId)
  const certificates = createCertificates(db)
  const { rows } = await db.raw<{ rows: { version: string }[] }>(`select current_setting('server_version') as version`)
  const proof = await db('installation').first<{ certificate: string | null } | undefined>('proof_certificate as certificate')

  return {
    workspace: `${userSlug}/${workspaceSlug}`,
    installationId: await createInstallation(db).id(),
    baseUrl: config.RELAY_BASE_URL === undefined ? undefined : text(config.RELAY_BASE_URL),
    versions: { relay: version, node: process.versions.node, database: rows[0]!.version },
    settings,
    bridge: settings.rfc && { url: text(new URL(settings.rfc.url).origin), functions: settings.rfc.allowedFunctions.map(text) },
    auditDays: auditDaysOf(settings, tier),
    documentDays: config.RETENTION_DOCUMENTS_DAYS,
    attemptDays: config.RETENTION_ATTEMPTS_DAYS,
    hasHomes: homes.length > 0 || repositories.some((each) => each.homeDestinationId !== null),
    contentStore: config.CONTENT_S3_BUCKET ? ('s3' as const) : config.CONTENT_DIR ? ('files' as const) : ('postgres' as const),
    smallBytes: config.CONTENT_DIR && !config.CONTENT_S3_BUCKET ? config.CONTENT_DIR_MIN_BYTES : 0,
    maxBytes: Math.min(settings.receiverMaxBytes ?? Infinity, config.RELAY_WORKSPACE_MAX_BYTES),
    sealingKeys: readSecretKeys(config.RELAY_SECRET_KEYS).map(([keyId]) => text(keyId)),
    provider: signIn && {
      issuer: text(signIn.provider.issuer),
      claim: text(signIn.provider.claim),
      rules: signIn.rules
        .filter((rule) => rule.userSlug === userSlug && rule.workspaceSlug === workspaceSlug)
        .map(({ value, level }) => ({ value: text(value), level })),
    },
    stampUrl: config.PROOF_TIMESTAMP_URL === undefined ? undefined : text(new URL(config.PROOF_TIMESTAMP_URL).origin),
    manifestCopies: destinations.filter((each) => config.PROOF_DESTINATIONS.includes(each.id)).map((each) => text(each.name)),
    proofCertificate: proof?.certificate ?? undefined,

    repositories: await Promise.all(
      repositories.map(async (each) => ({
        repoId: text(each.repoId),
        name: text(each.name),
        isActive: each.status === 'active',
        isConnected: connections.some(
          ({ repositories: linked, destinations: to }) => to.length > 0 && linked.some((one) => one.id === each.id),
        ),
        signatureVerification: each.signatureVerification,
        acceptsMcreate: each.acceptsMcreate,
        codePage: each.codePage,
        home: each.homeDestinationId === null ? undefined : { destination: nameOf(each.homeDestinationId), days: each.homeAfterDays },
        upstreamUrl: each.upstream === null ? undefined : text(new URL(each.upstream.url).origin),
        certificates: (await certificates.listAll(each.id)).map(({ subject, status, validTo, fingerprintSha256 }) => ({
          subject: text(subject),
          status,
          validTo: dayOf(validTo),
          fingerprintSha256,
        })),
      })),
    ),

    connections: connections.map((each) => {
      const { pathTemplate, properties, filter, onResume } = connectionSettings(each.settings)
      return {
        name: text(each.name),
        isActive: each.isActive,
        repositories: each.repositories.map(({ repoId }) => text(repoId)),
        destinations: each.destinations.map((destination) => text(destination.name)),
        pathTemplate: text(pathTemplate),
        properties: Object.entries(properties ?? {}).map(([property, value]) => `${text(property)} = ${text(value)}`),
        filter: filter === undefined || Object.keys(filter).length === 0 ? undefined : text(filter),
        onResume,
      }
    }),

    destinations: destinations.map((each) => {
      const connector = findConnector(each.connectorType)
      const masked = maskedConfig(connector ? maskedKeys(connector.config) : Object.keys(each.config), each.config)
      const { retain_days: days, retain_until: until, legal_hold: legalHold } = each.config
      const mode =
        each.config['object_lock_mode'] ?? each.config['immutability_mode'] ?? (each.connectorType === 'blob' ? 'unlocked' : 'GOVERNANCE')
      return {
        name: text(each.name),
        type: each.connectorType,
        config: Object.entries(masked)
          .filter(([key, value]) => !unlistedKeys.test(key) && value !== undefined && value !== '')
          .map(([key, value]) => `${text(key)} = ${text(value)}`),
        retention:
          days === undefined && until === undefined
            ? undefined
            : { days: days as number | undefined, until: until === undefined ? undefined : text(until), mode: text(mode) },
        legalHold: legalHold === true,
        isHome: homes.includes(each.id),
      }
    }),

    enrichments: (await enrichmentKind.listAll(db, id)).map((each) => ({
      name: text(each.name),
      isActive: each.isActive,
      repositories: each.repositoryIds.map((repositoryId) =>
        text(repositories.find((one) => one.id === repositoryId)?.repoId ?? repositoryId),
      ),
      waitSeconds: each.waitSeconds,
      lateDays: each.lateDays,
      steps: each.steps.map((step) => `${text(step.name)} (${step.kind})`),
    })),

    notifications: (await notificationKind.listAll(db, id))
      .filter(({ isActive }) => isActive)
      .map((each) => ({ name: text(each.name), events: each.events.map(text), destination: nameOf(each.destinationId) })),

    holdsLeftOut: Math.max(0, holds.total - holds.items.length),
    holds: holds.items.map((each) => ({
      scope: each.scope,
      subject: text([each.repoId, each.docId, each.erpObjectType, each.erpObjectId].filter((part) => part !== null).join(' ')),
      reason: text(each.reason),
      setAt: dayOf(each.createdAt),
      setBy: each.setBy === null ? undefined : text(each.setBy),
    })),

    keys: (await createApiKeys(db).listEverywhere(id))
      .filter(({ revokedAt }) => !revokedAt)
      .map((each) => ({ name: text(each.name), level: each.level, expiresAt: each.expiresAt ? dayOf(each.expiresAt) : undefined })),
  }
}

export type Facts = Awaited<ReturnType<typeof readFacts>>
