import { hardeningChecklist } from '../src/cli/doctor/checklist.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/security.md with the table of the hardening checklist, which `relay doctor` checks. */
export const withHardeningChecklist = (page: string): string => {
  const rows = hardeningChecklist.map(({ name, requirement, remedy }) => [name, requirement, remedy])
  return withGenerated(page, 'hardening', `\n${markdownTable(['Check', 'Requirement', 'Otherwise'], rows)}`)
}
