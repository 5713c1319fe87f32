import { relative } from 'node:path'
import Sequencer from '@jest/test-sequencer'
import slowFiles from './slow-files.json' with { type: 'json' }

// With a cold cache, jest begins with the largest files, and a short file that starts servers and waits for them may come last and alone.
const tiers = ['system', 'measured', 'release', 'db', 'unit']

/** Runs the files of slow-files.json first, about slowest first, then the tiers whose files take longest. Within a tier, jest's order applies: its last durations, or the sizes. */
export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const rankOf = ({ path, context: { config } }) => {
      const place = slowFiles.indexOf(relative(config.rootDir, path))
      return place >= 0 ? place : slowFiles.length + tiers.indexOf(config.displayName.name)
    }
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer
    const sorted = super.sort(tests)
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}
