import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig'
import { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { apiVariables } from './api.ts'
import { archiveVariables } from './archive.ts'
import { deliveryVariables } from './delivery.ts'
import { installationVariables } from './installation.ts'
import { maintenanceVariables } from './maintenance.ts'
import { serviceVariables } from './services.ts'

/**
 * Schema of the environment variables, with defaults and descriptions. The name of a number ends with its unit.
 * docs/configuration.md is generated from it.
 */
export const environment = z.object({
  ...installationVariables,
  ...apiVariables,
  ...archiveVariables,
  ...deliveryVariables,
  ...maintenanceVariables,
  ...serviceVariables,
})

export type Config = z.output<typeof environment> & {
  /** Address, namespace, TLS and API key, from the standard TEMPORAL_* variables or the TOML profile. */
  temporal: ClientConnectConfig
  /**
   * Variables passed to child processes, such as PATH, HOME and proxies. The variables of the relay, Temporal,
   * PostgreSQL, OpenTelemetry and cloud SDKs are excluded, because they contain secrets.
   */
  childEnvironment: Record<string, string>
  /** Names that look like variables of the relay and are not: probably misspelled. */
  unknownVariables: string[]
}

type Variables = Record<string, string | undefined>

/** Reads the configuration of this process. @throws `UserError` that names the invalid variables */
export const readConfig = (variables: Variables = process.env): Config => {
  const present = Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  )
  const parsed = environment.safeParse(present, plainMessages)
  if (!parsed.success) {
    const issues = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw new UserError(`Invalid configuration: ${issues.join('; ')}`)
  }
  return {
    ...parsed.data,
    RELAY_DATA_DIR: resolve(parsed.data.RELAY_DATA_DIR),
    temporal: readTemporal(present),
    childEnvironment: childEnvironmentOf(present),
    unknownVariables: Object.entries(present)
      .filter(isUnknown)
      .map(([name]) => name),
  }
}

/**
 * Returns the prefix that marks a name as one of the relay: the first word. Platforms also set variables that begin with DATABASE_, so
 * DATABASE_POOL_ is a prefix and DATABASE_URL has none. TEMPORAL_ and OTEL_ are no prefixes either: the SDKs and other programs read further
 * variables that begin with them.
 */
const prefixOf = (name: string): string | undefined => {
  const [first, second, third] = name.split('_')
  if (second === undefined || first === 'TEMPORAL' || first === 'OTEL') return undefined
  if (first !== 'DATABASE') return `${first}_`
  return third === undefined ? undefined : `DATABASE_${second}_`
}

/** Prefixes that only variables of the relay have. */
export const ownPrefixes: ReadonlySet<string> = new Set(Object.keys(environment.shape).flatMap((name) => prefixOf(name) ?? []))

// Kubernetes sets such variables for each Service of the namespace, unless enableServiceLinks is false: a Service relay-api makes
// RELAY_API_SERVICE_HOST, RELAY_API_PORT=tcp://10.0.0.1:8080 and RELAY_API_PORT_8080_TCP_ADDR.
const serviceLink = /_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/
const serviceLinkValue = /^(tcp|udp|sctp):\/\//

// The TypeScript client's example, docker-compose.yml, and the names that `relay export` gives to references.
const namesOfOthers = /^RELAY_(API_KEY|URL|WORKSPACE|DATABASE_PASSWORD|BIND|CREDENTIAL_.*)$/

const isUnknown = ([name, value]: [name: string, value: string]): boolean =>
  ownPrefixes.has(prefixOf(name) ?? '') &&
  !(name in environment.shape) &&
  !namesOfOthers.test(name) &&
  !serviceLink.test(name) &&
  !serviceLinkValue.test(value)

const ownVariables = /^(TEMPORAL_|OTEL_|AWS_|AZURE_|GOOGLE_|PG|RELAY_|TEST_)/

const childEnvironmentOf = (variables: Record<string, string>) =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in environment.shape) && !ownVariables.test(name)))

/**
 * Reads a file of `NAME=value` lines into the variables. A variable that is set already keeps its value; an empty one is not set.
 * @throws `UserError` if the file cannot be read
 */
export const loadEnvFile = (path: string, variables: NodeJS.ProcessEnv): void => {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (thrown) {
    throw new UserError(`Cannot read the file of --env-file: ${messageOf(thrown)}`, { cause: thrown })
  }
  for (const [name, value] of Object.entries(parseEnv(text))) variables[name] ||= value
}

const readTemporal = (variables: Record<string, string>): ClientConnectConfig => {
  try {
    return loadClientConnectConfig({ overrideEnvVars: variables })
  } catch (thrown) {
    throw new UserError(`The TEMPORAL_* variables or the Temporal profile are invalid: ${messageOf(thrown)}`, { cause: thrown })
  }
}
