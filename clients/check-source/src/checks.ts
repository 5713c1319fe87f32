import { profiles, type Check, type Profile } from './check.ts'
import { certificateChecks, chainChecks } from './checks/certificates.ts'
import { changeChecks } from './checks/change.ts'
import { createChecks } from './checks/create.ts'
import { loadChecks } from './checks/load.ts'
import { nameChecks } from './checks/names.ts'
import { readChecks } from './checks/read.ts'
import { requestChecks } from './checks/requests.ts'
import { searchChecks } from './checks/search.ts'
import { serverChecks } from './checks/server.ts'
import { signatureChecks } from './checks/signatures.ts'

const access = serverChecks.filter(({ id }) => id === 'access')

/** All checks, in the order of a run: what needs no access, the certificate of the run, access, and what needs it. What waits for the administrator comes first. */
export const checks: readonly Check[] = [
  ...serverChecks.filter(({ id }) => id !== 'access'),
  ...certificateChecks,
  ...access,
  ...chainChecks,
  ...createChecks,
  ...readChecks,
  ...changeChecks,
  ...requestChecks,
  ...nameChecks,
  ...searchChecks,
  ...signatureChecks,
  ...loadChecks,
]

/** Returns the checks of a profile: its own, and those of the profiles before it. */
export const checksOf = (profile: Profile): readonly Check[] =>
  checks.filter((check) => profiles.indexOf(check.profile) <= profiles.indexOf(profile))
