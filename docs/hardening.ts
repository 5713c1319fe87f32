import { hardeningChecks } from '../src/cli/doctor/hardening-checks.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/security.md with the table of the hardening checklist, which `relay doctor` checks. */
export const withHardeningChecklist = (page: string): string => {
  const rows = hardeningChecks.map(({ name, requirement, remedy }) => [name, requirement, remedy])
  return withGenerated(page, 'hardening', `\n${markdownTable(['Check', 'Requirement', 'Otherwise'], rows)}`)
}
