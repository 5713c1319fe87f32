import type { Config } from '../../config/config.ts'
import type { Database } from '../../db/database.ts'
import { findBucketProblems } from './bucket-checks.ts'
import {
  findAddressRules,
  findInsecureOrigins,
  findLogLevel,
  findMissingLimits,
  findPublicAddress,
  findSignatureRules,
  findUnencryptedTemporal,
  findWeakSealingKeys,
  findWideRanges,
} from './configuration-checks.ts'
import {
  findAdminKeysWithoutExpiry,
  findClockDifference,
  findMissingPartitions,
  findRepositories,
  findRoleAttributes,
  findSealedUnderOlderKeys,
  findSignerCertificates,
  findUnencryptedDatabase,
  findUnorderedSignatures,
  findUnusedKeys,
} from './database-checks.ts'

interface HardeningDeps {
  config: Config
  db: Database
}

export interface HardeningCheck {
  name: string
  /** Condition that a hardened installation meets, as docs/security.md and `relay doctor` state it. */
  requirement: string
  /** Instruction for an operator if the condition is not met. */
  remedy: string
  /** The checks of `relay doctor` that must have succeeded. */
  needs: readonly ('schema' | 'secret keys')[]
  /** Returns the deviations, one sentence each. Empty if the requirement is met. */
  find(deps: HardeningDeps): string[] | Promise<string[]>
}

const keyUnusedDays = 90

/** The hardening checklist, the most urgent line first. */
export const hardeningChecklist: readonly HardeningCheck[] = [
  {
    name: 'open receivers',
    requirement: 'Every active repository demands signatures, or its workspace restricts the addresses',
    remedy: 'Turn signature_verification on, or set receiver_allowed_cidrs in the settings of the workspace.',
    needs: ['schema'],
    find: ({ db }) =>
      findRepositories(
        db,
        'open_to_all',
        'Everybody who can reach these receivers can store, read and delete documents, because neither signatures nor addresses are checked',
      ),
  },
  {
    name: 'sealing keys',
    requirement: 'The keys in `RELAY_SECRET_KEYS` are random',
    remedy: 'Put a key of openssl rand -base64 32 first, restart every process, run relay keys rotate, and enter the credentials again.',
    needs: ['secret keys'],
    find: ({ config }) => findWeakSealingKeys(config),
  },
  {
    name: 'public address',
    requirement: '`RELAY_BASE_URL` begins with https: a proxy ends TLS in front of the relay',
    remedy: 'Put a proxy with TLS in front of the relay and set RELAY_BASE_URL to its URL.',
    needs: [],
    find: ({ config }) => findPublicAddress(config),
  },
  {
    name: 'client addresses',
    requirement: '`RELAY_TRUST_PROXY` is true behind a proxy, and only there',
    remedy:
      'Set RELAY_TRUST_PROXY=true if all requests pass a proxy that appends the address of the client to X-Forwarded-For, else false.',
    needs: [],
    find: ({ config }) => findAddressRules(config),
  },
  {
    name: 'database role',
    requirement: 'The role in `DATABASE_URL` has no rights beyond the database of the relay',
    remedy: 'Use a role that owns only this database.',
    needs: ['schema'],
    find: ({ db }) => findRoleAttributes(db),
  },
  {
    name: 'database encryption',
    requirement: 'The connection to a PostgreSQL on another machine is encrypted, and the certificate is verified',
    remedy: 'Add sslmode=verify-full to DATABASE_URL, with sslrootcert for a certificate authority of your own.',
    needs: ['schema'],
    find: ({ db, config }) => findUnencryptedDatabase(db, config),
  },
  {
    name: 'Temporal encryption',
    requirement: 'The connection to a Temporal on another machine is encrypted and authenticated',
    remedy:
      'Set TEMPORAL_TLS=true, and TEMPORAL_API_KEY or a client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH).',
    needs: [],
    find: ({ config }) => findUnencryptedTemporal(config),
  },
  {
    name: 'content bucket',
    requirement: 'The bucket of the contents answers, is not public, and is reached over https',
    remedy: 'Block public access to the bucket, and use an https address in CONTENT_S3_ENDPOINT.',
    needs: [],
    find: ({ config }) => findBucketProblems(config),
  },
  {
    name: 'private addresses',
    requirement: '`RELAY_ALLOWED_PRIVATE_CIDRS` names single hosts or small networks, and not this machine',
    remedy: 'List only the addresses of your targets: members choose where destinations connect to.',
    needs: [],
    find: ({ config }) => findWideRanges(config),
  },
  {
    name: 'signer certificates',
    requirement: 'Certificates that verify signatures are strong, and stay valid for the next 30 days',
    remedy: 'Have the source system send a new certificate, activate it, and deactivate the old one.',
    needs: ['schema'],
    find: ({ db }) => findSignerCertificates(db, new Date()),
  },
  {
    name: 'signature rules',
    requirement: 'Signatures cover all commands, in the fixed order of parameters, and expire at most 15 minutes late',
    remedy: 'Leave RELAY_SIGNATURE_SCOPE and RELAY_SIGNATURE_SKEW_MS at their defaults, and set signed_parameter_order to fixed.',
    needs: ['schema'],
    find: async ({ db, config }) => [...findSignatureRules(config), ...(await findUnorderedSignatures(db))],
  },
  {
    name: 'admin keys',
    requirement: 'API keys of level `admin` expire',
    remedy: 'Create a key with an expiry, and revoke the one without.',
    needs: ['schema'],
    find: ({ db }) => findAdminKeysWithoutExpiry(db),
  },
  {
    name: 'unused API keys',
    requirement: `Every valid API key was used or created in the last ${keyUnusedDays} days`,
    remedy: 'Revoke the keys that nobody needs.',
    needs: ['schema'],
    find: ({ db }) => findUnusedKeys(db, keyUnusedDays),
  },
  {
    name: 'key rotation',
    requirement: 'All credentials are sealed with the first key in `RELAY_SECRET_KEYS`',
    remedy: 'Run relay keys rotate.',
    needs: ['schema', 'secret keys'],
    find: ({ db, config }) => findSealedUnderOlderKeys(db, config),
  },
  {
    name: 'limits',
    requirement: 'Stored bytes and requests of a workspace are limited, and download links expire within 30 days',
    remedy: 'Set RELAY_WORKSPACE_MAX_BYTES, RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE and DOWNLOAD_LINK_TTL_MS.',
    needs: [],
    find: ({ config }) => findMissingLimits(config),
  },
  {
    name: 'web origins',
    requirement: '`RELAY_CORS_ORIGINS` names https origins only',
    remedy: 'Serve these pages over https.',
    needs: [],
    find: ({ config }) => findInsecureOrigins(config),
  },
  {
    name: 'log level',
    requirement: '`RELAY_LOG_LEVEL` is info or warn',
    remedy: 'Set RELAY_LOG_LEVEL to info.',
    needs: [],
    find: ({ config }) => findLogLevel(config),
  },
  {
    name: 'clocks',
    requirement: 'The clocks of this machine and of PostgreSQL differ by less than 5 seconds',
    remedy: 'Synchronize the clocks of all machines: signatures, keys and links expire by them.',
    needs: ['schema'],
    find: ({ db }) => findClockDifference(db),
  },
  {
    name: 'partitions',
    requirement: 'The partitions of the next 7 days exist',
    remedy: 'Start a relay worker, which creates them, and check its schedules.',
    needs: ['schema'],
    find: ({ db }) => findMissingPartitions(db, new Date()),
  },
  {
    name: 'unconnected repositories',
    requirement: 'Every active repository has a connection to a destination',
    remedy: 'Create a connection, or deactivate the repository.',
    needs: ['schema'],
    find: ({ db }) =>
      findRepositories(db, 'not_connected', 'These repositories discard what they receive, because no connection leads to a destination'),
  },
  {
    name: 'similar repository names',
    requirement: 'No repository shares a signer with another one whose name begins alike',
    remedy: 'Use names of the same length: where a signed URL fits several repositories, it counts for one only.',
    needs: ['schema'],
    find: ({ db }) =>
      findRepositories(db, 'similar_name', 'These repositories share a signer with another repository whose name begins alike'),
  },
]
