import { MockActivityEnvironment } from '@temporalio/testing'

/** Creates the environment of an activity that the workflow has asked for just now. */
export const createActivityEnvironment = (info: ConstructorParameters<typeof MockActivityEnvironment>[0] = {}): MockActivityEnvironment =>
  new MockActivityEnvironment({ scheduledTimestampMs: Date.now(), ...info })
