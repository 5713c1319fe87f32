import { createHash, X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { messageOf, UserError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { createConnectors } from '../../connectors/index.ts'
import type { Database } from '../../db/database.ts'
import { createInstallation } from '../../db/installation.ts'
import { openProofKey } from '../../proof/proof-key.ts'
import { createSignSha256 } from '../../security/cms-sign.ts'
import { createKeyRing } from '../../security/seal.ts'
import { readFacts, type Facts } from './facts.ts'
import { de } from './words-de.ts'
import { en, type Words } from './words-en.ts'

const languages = { en, de } as const

export interface DescribeOptions {
  lang: keyof typeof languages
  /** The day of the last restore test: nothing in the relay records it. */
  restoreTest?: string | undefined
  now?: Date
}

interface Section {
  heading: string
  sentences: string[]
  /** Each stands for itself: a repository, a connection. */
  items?: string[]
}

/** `relay describe`: the process description of a workspace, in Markdown. @throws `UserError` if the workspace does not exist */
export const describeWorkspace = async (
  db: Database,
  config: Config,
  workspace: string,
  { lang, restoreTest, now = new Date() }: DescribeOptions,
): Promise<string> => {
  const facts = await readFacts(db, workspace, { config, findConnector: createConnectors(config).find })
  const words: Words = languages[lang]
  const lines = sectionsOf(facts, words, restoreTest).flatMap(({ heading, sentences, items }) => [
    `## ${heading}`,
    ...(sentences.length > 0 ? [sentences.join(' ')] : []),
    ...(items ? [items.length === 0 ? words.none : items.map((item) => `- ${item}`).join('\n')] : []),
  ])
  const made = words.made(now.toISOString().slice(0, 16).replace('T', ' '), facts.versions.relay)
  return [`# ${words.title(facts.workspace)}`, made, ...lines].join('\n\n') + '\n'
}

const sectionsOf = (facts: Facts, words: Words, restoreTest: string | undefined): Section[] => {
  const { settings, versions } = facts
  const { system, sources, storage, connections, destinations, enrichments, delivery, retention, holds, proof, access, operation } = words
  const fingerprint = facts.proofCertificate && new X509Certificate(facts.proofCertificate).fingerprint256
  return [
    {
      heading: system.heading,
      sentences: [
        system.purpose,
        system.workspace(facts.workspace, facts.installationId),
        system.address(facts.baseUrl),
        system.versions(versions.relay, versions.node, versions.database),
      ],
    },
    {
      heading: sources.heading,
      sentences: [sources.addresses(settings.receiverAllowedCidrs)],
      items: facts.repositories.map((each) =>
        [
          sources.repository(each),
          ...(each.isConnected ? [] : [sources.unconnected]),
          ...(each.home ? [sources.home(each.home.destination, each.home.days)] : []),
          ...(each.upstreamUrl === undefined ? [] : [sources.upstream(each.upstreamUrl)]),
          ...each.certificates.map((one) => `\n  - ${sources.certificate(one.subject, one.status, one.validTo, one.fingerprintSha256)}`),
        ].join(' '),
      ),
    },
    {
      heading: storage.heading,
      sentences: [
        storage.store(storage.stores[facts.contentStore]),
        ...(facts.smallBytes > 0 ? [storage.small(facts.smallBytes)] : []),
        storage.quota(String(facts.maxBytes)),
        storage.sealing(facts.sealingKeys),
      ],
    },
    { heading: connections.heading, sentences: [], items: facts.connections.map(connections.connection) },
    {
      heading: destinations.heading,
      sentences: [],
      items: facts.destinations.map((each) =>
        [destinations.destination(each), destinations.retention(each), each.isHome ? destinations.home : ''].filter(Boolean).join(' '),
      ),
    },
    {
      heading: enrichments.heading,
      sentences: [
        facts.bridge && facts.bridge.functions.length > 0
          ? enrichments.bridge(facts.bridge.url, facts.bridge.functions)
          : enrichments.noBridge,
      ],
      items: facts.enrichments.map(enrichments.enrichment),
    },
    {
      heading: delivery.heading,
      sentences: [
        delivery.retries(
          settings.maxRetries,
          settings.retryTtlSeconds,
          settings.retryInitialIntervalSeconds,
          settings.retryMaxIntervalSeconds,
        ),
        delivery.receipt,
        ...facts.notifications.map((each) => delivery.notification(each.name, each.events, each.destination)),
      ],
    },
    {
      heading: retention.heading,
      sentences: [
        retention.content(settings.contentDays),
        ...(facts.hasHomes ? [retention.homes] : []),
        retention.documents(facts.documentDays),
        retention.attempts(facts.attemptDays),
        retention.requests(settings.capturedRequestsDays, settings.capturedBodiesDays),
        retention.events(settings.eventsDays),
        retention.erasure,
        retention.source,
      ],
    },
    {
      heading: holds.heading,
      sentences: [holds.rule, ...(facts.holdsLeftOut > 0 ? [holds.more(facts.holdsLeftOut)] : [])],
      items: facts.holds.map(holds.hold),
    },
    {
      heading: proof.heading,
      sentences: [
        proof.audit(facts.auditDays),
        proof.manifest(fingerprint),
        proof.stamp(facts.stampUrl),
        proof.copies(facts.manifestCopies),
      ],
    },
    {
      heading: access.heading,
      sentences: [access.levels, access.signIn(facts.provider?.issuer)],
      items: [
        ...(facts.provider?.rules.map(({ value, level }) => access.people(facts.provider!.claim, value, level)) ?? []),
        ...facts.keys.map((each) => access.key(each.name, each.level, each.expiresAt)),
      ],
    },
    { heading: operation.heading, sentences: [operation.backup, operation.restoreTest(restoreTest)] },
  ]
}

/**
 * Writes a description, and beside it its signature and the certificate, as `relay proof export` does for a manifest.
 * @returns the paths
 * @throws `UserError` if a file cannot be written
 */
export const writeDescription = async (
  db: Database,
  config: Config,
  path: string,
  description: string,
  isSigned: boolean,
): Promise<string[]> => {
  const files = new Map<string, string | Buffer>([[path, description]])
  if (isSigned) {
    const key = await openProofKey(db, createKeyRing(config.RELAY_SECRET_KEYS), await createInstallation(db).id())
    const digest = createHash('sha256').update(description).digest()
    files.set(`${path}.p7s`, createSignSha256(key)(digest, new Date()))
    files.set(`${path}.pem`, key.certificate)
  }
  try {
    for (const [file, bytes] of files) await writeFile(file, bytes)
  } catch (thrown) {
    throw new UserError(`The description could not be written: ${messageOf(thrown)}`, { cause: thrown })
  }
  return [...files.keys()]
}
