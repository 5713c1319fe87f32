import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig'
import { z } from 'zod'
import { apiVariables } from './config/api.ts'
import { archiveVariables } from './config/archive.ts'
import { deliveryVariables } from './config/delivery.ts'
import { installationVariables } from './config/installation.ts'
import { maintenanceVariables } from './config/maintenance.ts'
import { serviceVariables } from './config/services.ts'
import { plainMessages } from './domain/issue-messages.ts'
import { messageOf, UserError } from './errors.ts'

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
  /** Names of variables that look like ones of the relay and are none: probably spelled wrongly. */
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
    unknownVariables: Object.keys(present).filter((name) => relayVariables.test(name) && !(name in environment.shape)),
  }
}

// The variables of set-up scripts and tests (RELAY_TEST_*, and where a tool is) and those that `relay export` names are read elsewhere.
const relayVariables = /^(RELAY_(?!TEST_|CREDENTIAL_|\w+_(BIN|DIR)$)|CONTENT_|CAPTURE_|DELIVERY_|OUTBOX_)/

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
