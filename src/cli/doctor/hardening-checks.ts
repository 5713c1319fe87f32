import ipaddr from 'ipaddr.js'
import { createSealedCredentials } from '../../access/sealing-keys.ts'
import { dayMs } from '../../base/day.ts'
import type { Database } from '../../db/database.ts'
import { listTablesWithoutPartition } from '../../db/partitions.ts'
import { findRepositoryWarnings } from '../../routing/repository-warnings.ts'
import { certificateWarnings } from '../../security/certificate.ts'
import { createKeyRing, readSecretKeys } from '../../security/seal.ts'
import { describeClockDifference, listed, listNames, type Check, type CheckDeps } from './check.ts'
import { findSharedGrants } from './shared-grants.ts'

type HardeningDeps = Pick<CheckDeps, 'config' | 'db'>

/** A check of the hardening checklist. `find` returns the deviations, one sentence each. */
interface HardeningCheck extends Check<HardeningDeps> {
  requirement: string
  find(deps: HardeningDeps): string[] | Promise<string[]>
}

const certificateDaysMin = 30
const keyDistinctBytesMin = 16
const keyUnusedDays = 90
const linkMaxDays = 30
const partitionDaysMin = 7
const skewMaxMinutes = 15
// A network of 256 addresses, and one IPv6 network of a site.
const prefixMin = { ipv4: 24, ipv6: 64 }

/** Finds the repositories with a warning. @param condition what it means for them, as the beginning of a sentence */
const warned = (
  code: keyof Awaited<ReturnType<typeof findRepositoryWarnings>>,
  condition: string,
): Pick<HardeningCheck, 'needs' | 'find'> => ({
  needs: ['schema'],
  find: async ({ db }) => naming(condition, (await findRepositoryWarnings(db))[code]),
})

/** The hardening checklist, the most urgent line first. */
export const hardeningChecks: readonly HardeningCheck[] = [
  {
    name: 'open receivers',
    requirement: 'Every active repository demands signatures, or its workspace restricts the addresses',
    remedy: 'Turn signature_verification on, or set receiver_allowed_cidrs in the settings of the workspace.',
    ...warned(
      'open_to_all',
      'Everybody who can reach these receivers can store, read and delete documents, because neither signatures nor addresses are checked',
    ),
  },
  {
    name: 'sealing keys',
    requirement: 'The keys in `RELAY_SECRET_KEYS` are random',
    remedy: 'Put a key of openssl rand -base64 32 first, restart every process, run relay secrets rotate, and enter the credentials again.',
    needs: ['secret keys'],
    find: ({ config }) =>
      readSecretKeys(config.RELAY_SECRET_KEYS)
        // 32 random bytes have about 30 distinct values, and never all of them are letters of a text.
        .filter(([, key]) => new Set(key).size < keyDistinctBytesMin || key.every((byte) => byte >= 0x20 && byte < 0x7f))
        .map(([id]) => `The key ${id} is a text or a pattern.`),
  },
  {
    name: 'public address',
    requirement: '`RELAY_BASE_URL` begins with https: a proxy ends TLS in front of the relay',
    remedy: 'Put a proxy with TLS in front of the relay and set RELAY_BASE_URL to its URL.',
    find: ({ config }) => {
      const url = urlOf(config.RELAY_BASE_URL)
      if (!url) return ['RELAY_BASE_URL is not set: links are made from the Host header of a request.']
      return url.protocol === 'https:' || isLocalHost(url.hostname) ? [] : ['API keys and documents travel in clear.']
    },
  },
  {
    name: 'client addresses',
    requirement: '`RELAY_TRUST_PROXY` is true behind a proxy, and only there',
    remedy:
      'Set RELAY_TRUST_PROXY=true if all requests pass a proxy that appends the address of the client to X-Forwarded-For, else false.',
    find: ({ config }) => {
      const isBehindProxy = urlOf(config.RELAY_BASE_URL)?.protocol === 'https:'
      if (isBehindProxy === config.RELAY_TRUST_PROXY) return []
      return isBehindProxy
        ? ['The relay takes the address of the proxy for that of every client.']
        : ['RELAY_BASE_URL names no proxy, and without one every client can name any address.']
    },
  },
  {
    name: 'metrics',
    requirement: 'The metrics, which name workspaces, need `RELAY_METRICS_TOKEN`, or are on this machine only',
    remedy: 'Set RELAY_METRICS_TOKEN, and give it to Prometheus, or set RELAY_PROBES_HOST=127.0.0.1.',
    find: ({ config }) =>
      config.RELAY_METRICS_TOKEN !== undefined || isLocalHost(config.RELAY_PROBES_HOST)
        ? []
        : [`Everybody who reaches ${config.RELAY_PROBES_HOST} can read them.`],
  },
  {
    name: 'database role',
    requirement: 'The role in `DATABASE_URL` has no rights beyond the database of the relay',
    remedy: 'Use a role that owns only this database.',
    needs: ['schema'],
    find: async ({ db }) => {
      const rights = await listRightsOfRole(db)
      return rights.length > 0 ? [`The role ${rights.join(', ')}.`] : []
    },
  },
  {
    name: 'database encryption',
    requirement: 'The connection to a PostgreSQL on another machine is encrypted, and the certificate is verified',
    remedy: 'Add sslmode=verify-full to DATABASE_URL, with sslrootcert for a certificate authority of your own.',
    needs: ['schema'],
    find: async ({ db, config: { DATABASE_URL = '' } }) => {
      const { rows } = await db.raw<{ rows: { isEncrypted: boolean; server: string | null }[] }>(`
        select ssl as "isEncrypted", host(inet_server_addr()) as server
        from pg_stat_ssl
        where pid = pg_backend_pid()
      `)
      const { isEncrypted = false, server = null } = rows[0] ?? {}
      // A Unix socket has no address.
      if (server === null || isLocalHost(server)) return []
      if (!isEncrypted) return [`The connection to ${server} is not encrypted.`]
      // Both accept any certificate.
      const isUnverified = /[?&](?:sslmode=no-verify|uselibpqcompat=true)(?:&|$)/.test(DATABASE_URL)
      return isUnverified ? ['The certificate of the server is not verified.'] : []
    },
  },
  {
    name: 'Temporal encryption',
    requirement: 'The connection to a Temporal on another machine is encrypted and authenticated',
    remedy:
      'Set TEMPORAL_TLS=true, and TEMPORAL_API_KEY or a client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH).',
    find: ({ config }) => {
      const { address = '127.0.0.1:7233', tls, apiKey } = config.temporal.connectionOptions
      if (isLocalHost(address.replace(/:\d+$/, ''))) return []
      // An API key turns TLS on, unless it is switched off.
      const isEncrypted = tls === undefined || tls === null ? apiKey !== undefined : tls !== false
      const hasCertificate = typeof tls === 'object' && tls?.clientCertPair !== undefined
      return [
        ...(isEncrypted ? [] : [`The connection to ${address} is not encrypted.`]),
        ...(apiKey !== undefined || hasCertificate ? [] : [`The relay shows ${address} neither an API key nor a certificate.`]),
      ]
    },
  },
  {
    name: 'content bucket',
    requirement: 'The bucket of the contents answers, is not public, and is reached over https',
    remedy: 'Block public access to the bucket, and use an https address in CONTENT_S3_ENDPOINT.',
    find: async ({ config: { CONTENT_S3_BUCKET, ...config } }) => {
      if (CONTENT_S3_BUCKET === undefined) return []
      const { findBucketProblems } = await import('./bucket-check.ts')
      const endpoint = urlOf(config.CONTENT_S3_ENDPOINT)
      const isPlain = endpoint?.protocol === 'http:' && !isLocalHost(endpoint.hostname)
      return [
        ...(await findBucketProblems({ ...config, CONTENT_S3_BUCKET })),
        ...(isPlain ? [`The contents travel to ${config.CONTENT_S3_ENDPOINT} in clear.`] : []),
      ]
    },
  },
  {
    name: 'private addresses',
    requirement: '`RELAY_ALLOWED_PRIVATE_CIDRS` names single hosts or small networks, and not this machine',
    remedy:
      'List only the addresses of your targets, and of proxies that have rules of their own: members choose where destinations connect to, and through which proxy an upstream is asked.',
    find: ({ config }) =>
      config.RELAY_ALLOWED_PRIVATE_CIDRS.flatMap((text) => {
        const [address, bits] = ipaddr.parseCIDR(text)
        if (address.range() === 'loopback') return [`${text} lets destinations connect to this machine.`]
        return bits < prefixMin[address.kind()] ? [`${text} is larger than a /${prefixMin[address.kind()]} network.`] : []
      }),
  },
  {
    name: 'shared resources',
    requirement:
      'With several workspaces, each entry of `RELAY_DIRECTORY_ROOTS`, `RELAY_TOKEN_FILE_ROOTS` and `RELAY_S3_ROLES` is for one of them, or has a part for each',
    remedy: 'Put user/workspace= in front of the entry, or {workspace} into it.',
    needs: ['schema'],
    find: findSharedGrants,
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
    find: async ({ db, config: { RELAY_SIGNATURE_SCOPE: scope, RELAY_SIGNATURE_SKEW_MS: skewMs } }) => [
      ...(scope === 'all' ? [] : ['RELAY_SIGNATURE_SCOPE is doc_prot: who creates a document decides what needs a signature.']),
      ...(skewMs <= skewMaxMinutes * 60_000
        ? []
        : [`RELAY_SIGNATURE_SKEW_MS accepts URLs for ${skewMs / 60_000} minutes after their expiration.`]),
      ...naming('These repositories accept signed parameters in any order', await listUnorderedRepositories(db)),
    ],
  },
  {
    name: 'admin keys',
    requirement: 'API keys of level `admin` expire',
    remedy: 'Create a key with an expiry, and revoke the one without.',
    needs: ['schema'],
    find: async ({ db }) => naming('These keys never expire', await listKeyNames(db, `level = 'admin' and expires_at is null`)),
  },
  {
    name: 'unused API keys',
    requirement: `Every valid API key was used or created in the last ${keyUnusedDays} days`,
    remedy: 'Revoke the keys that nobody needs.',
    needs: ['schema'],
    find: async ({ db }) =>
      naming(
        `These keys were not used for ${keyUnusedDays} days`,
        await listKeyNames(db, `coalesce(last_used_at, api_keys.created_at) < now() - make_interval(days => ${keyUnusedDays})`),
      ),
  },
  {
    name: 'key rotation',
    requirement: 'All credentials are sealed with the first key in `RELAY_SECRET_KEYS`',
    remedy: 'Run relay secrets rotate.',
    needs: ['schema', 'secret keys'],
    find: async ({ db, config }) => {
      const { sealingId } = createKeyRing(config.RELAY_SECRET_KEYS)
      const older = await createSealedCredentials(db).listSealedUnderOtherKeys(sealingId, undefined, namesMax + 1)
      return naming(
        `Other keys than ${sealingId} have sealed the credentials of`,
        older.map(({ kind, id }) => `${kind === 'rfc' ? 'workspace' : 'destination'} ${id}`),
      )
    },
  },
  {
    name: 'limits',
    requirement: 'Stored bytes and requests of a workspace are limited, and download links expire within 30 days',
    remedy: 'Set RELAY_WORKSPACE_MAX_BYTES, RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE and DOWNLOAD_LINK_TTL_MS.',
    find: ({ config }) => [
      ...(['RELAY_WORKSPACE_MAX_BYTES', 'RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE'] as const)
        .filter((name) => config[name] === 0)
        .map((name) => `${name} is 0: one workspace can use up the resources of all.`),
      ...(config.DOWNLOAD_LINK_TTL_MS <= linkMaxDays * dayMs
        ? []
        : [`Download links are valid for ${Math.round(config.DOWNLOAD_LINK_TTL_MS / dayMs)} days.`]),
    ],
  },
  {
    name: 'web origins',
    requirement: '`RELAY_CORS_ORIGINS` names https origins only',
    remedy: 'Serve these pages over https.',
    find: ({ config }) =>
      config.RELAY_CORS_ORIGINS.filter((origin) => origin.startsWith('http:') && !isLocalHost(new URL(origin).hostname)).map(
        (origin) => `A page of ${origin} can be replaced on its way to the browser, and then reads what the page may read.`,
      ),
  },
  {
    name: 'log level',
    requirement: '`RELAY_LOG_LEVEL` is info or warn',
    remedy: 'Set RELAY_LOG_LEVEL to info.',
    find: ({ config: { RELAY_LOG_LEVEL: level } }) => {
      if (level === 'info' || level === 'warn') return []
      const isVerbose = level === 'trace' || level === 'debug'
      return [isVerbose ? `The level ${level} logs more than operation needs.` : `The level ${level} hides warnings.`]
    },
  },
  {
    name: 'clocks',
    requirement: 'The clocks of this machine and of PostgreSQL differ by less than 5 seconds',
    remedy: 'Synchronize the clocks of all machines: signatures, keys and links expire by them.',
    urgency: 'delays',
    needs: ['schema'],
    find: async ({ db }) => {
      const before = Date.now()
      const { rows } = await db.raw<{ rows: { now: Date }[] }>('select clock_timestamp() as now')
      return describeClockDifference('PostgreSQL', { before, theirs: rows[0]!.now.getTime(), after: Date.now() })
    },
  },
  {
    name: 'partitions',
    requirement: 'The partitions of the next 7 days exist',
    remedy: 'Start a relay worker, which creates them, and check its schedules.',
    urgency: 'stops',
    needs: ['schema'],
    find: async ({ db }) =>
      naming(
        'The partitions of these tables end too early',
        await listTablesWithoutPartition(db, new Date(Date.now() + partitionDaysMin * dayMs)),
      ),
  },
  {
    name: 'unconnected repositories',
    requirement: 'Every active repository has a connection to a destination',
    remedy: 'Create a connection, or deactivate the repository.',
    urgency: 'loses',
    ...warned('not_connected', 'These repositories discard what they receive, because no connection leads to a destination'),
  },
  {
    name: 'repositories without a certificate',
    requirement: 'Every active repository that requires signatures has an active certificate',
    remedy: 'Compare the fingerprint of a certificate of the source system, and activate the certificate.',
    urgency: 'stops',
    ...warned('no_active_certificate', 'These repositories refuse every signed request, because no certificate is active'),
  },
  {
    name: 'similar repository names',
    requirement: 'No repository shares a signer with another one whose name begins alike',
    remedy: 'Use names of the same length: where a signed URL fits several repositories, it counts for one only.',
    ...warned('similar_name', 'These repositories share a signer with another repository whose name begins alike'),
  },
]

const namesMax = 10

/** Returns a sentence that ends with the names, or nothing if there are none. */
const naming = (condition: string, names: string[]): string[] => (names.length === 0 ? [] : [`${condition}: ${listed(names, namesMax)}.`])

/** Returns true for a host name or address of this machine. */
const isLocalHost = (host: string): boolean => {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || (ipaddr.isValid(name) && ipaddr.process(name).range() === 'loopback')
}

const urlOf = (text: string | undefined) => (text !== undefined && URL.canParse(text) ? new URL(text) : undefined)

const listRightsOfRole = async (db: Database): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { rights: string[] }[] }>(`
    select array_remove(array[
      case when rolsuper then 'is a superuser' end,
      case when rolcreatedb then 'can create databases' end,
      case when rolcreaterole then 'can create roles' end,
      case when rolreplication then 'can replicate the whole server' end,
      case when rolbypassrls then 'bypasses row security' end
    ], null) as rights
    from pg_roles
    where rolname = current_user
  `)
  return rows[0]?.rights ?? []
}

interface ActiveCertificate {
  name: string
  validTo: Date
  keyAlgorithm: string
  keyBits: number | null
  signatureAlgorithm: string
}

const findSignerCertificates = async (db: Database, now: Date): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: ActiveCertificate[] }>(`
    select
      user_slug || '/' || workspace_slug || ' ' || repo_id || ' ' || auth_id as name,
      valid_to as "validTo", key_algorithm as "keyAlgorithm", key_bits as "keyBits", signature_algorithm as "signatureAlgorithm"
    from certificates
    join repositories on repositories.id = certificates.repository_id
    join workspaces on workspaces.id = certificates.workspace_id
    where is_active
      and repositories.status = 'active'
      and repositories.signature_verification
      and repositories.deleted_at is null
    order by name
  `)
  const soon = new Date(now.getTime() + certificateDaysMin * dayMs)
  const withCode = (code: string) => rows.filter((row) => certificateWarnings(row, now).some((warning) => warning.code === code))
  const namesOf = (found: ActiveCertificate[]) => found.map(({ name }) => name)
  const expiring = rows.filter(({ validTo }) => validTo >= now && validTo < soon)
  return [
    ...naming('These certificates have a short key', namesOf(withCode('short_key'))),
    ...naming('These certificates are signed with MD5 or MD2', namesOf(withCode('md5'))),
    ...naming('These certificates have expired', namesOf(withCode('expired'))),
    ...naming(`These certificates expire within ${certificateDaysMin} days`, namesOf(expiring)),
  ]
}

const listUnorderedRepositories = (db: Database) =>
  listNames(
    db,
    `
      select user_slug || '/' || workspace_slug || ' ' || repo_id as name
      from repositories
      join workspaces on workspaces.id = repositories.workspace_id
      where signed_parameter_order = 'any'
        and signature_verification
        and status = 'active'
        and deleted_at is null
      order by name
    `,
  )

/** Lists the keys that are valid and meet a condition. */
const listKeyNames = (db: Database, condition: string) =>
  listNames(
    db,
    `
      select user_slug || '/' || workspace_slug || ' ' || api_keys.id as name
      from api_keys
      join workspaces on workspaces.id = api_keys.workspace_id
      where revoked_at is null
        and (expires_at is null or expires_at > now())
        and ${condition}
      order by name
    `,
  )
