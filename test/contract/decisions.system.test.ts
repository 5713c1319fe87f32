import { share } from '../support/share.ts'
import { decidedAccessRows } from './decided-access.ts'
import { decidedDocumentRows } from './decided-documents.ts'
import { decidedErrorRows } from './decided-errors.ts'
import { decidedSourceRows } from './decided-source.ts'
import { decidedTargetRows } from './decided-targets.ts'
import { startWorld } from './world.ts'

// Behaviour that the API specification leaves open and that docs/ describes, checked from outside.

const world = share(await startWorld())

test.each([...decidedErrorRows, ...decidedAccessRows, ...decidedDocumentRows, ...decidedTargetRows, ...decidedSourceRows])(
  '%s',
  async (_, check) => {
    expect.hasAssertions()
    await check(world)
  },
)
