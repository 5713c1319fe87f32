import { readFileSync } from 'node:fs'
import { checks } from '../clients/check-source/src/checks.ts'
import { facts } from '../clients/check-source/src/facts.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

/** Returns docs/conformance.md with its two tables: what the protocol says with the checks about it, and the checks of each profile. */
export const conformancePage = (): string => {
  const page = readFileSync(new URL('conformance.md', import.meta.url), 'utf8')
  const ofFacts = Object.entries(facts).map(([id, text]) => {
    const about = checks.filter((check) => (check.facts as readonly string[]).includes(id))
    return [text, about.map((check) => `\`${check.id}\``).join(', ')]
  })
  const ofProfiles = ['smoke', 'core', 'wire', 'full'].map((profile) => {
    const own = checks.filter((check) => check.profile === profile).map(({ id }) => `\`${id}\``)
    return [`\`${profile}\``, own.join(', ')]
  })
  const withFacts = withGenerated(page, 'facts', `\n${markdownTable(['What the protocol says', 'Checks'], ofFacts)}`)
  return withGenerated(
    withFacts,
    'checks',
    `\n${markdownTable(['Profile', 'Its checks, besides those of the profiles before it'], ofProfiles)}`,
  )
}
