import TestRunner from 'jest-runner'

/** Runs the test files of a project in one worker. jest begins with them when the files of the other projects have ended. */
export default class OneAtATime extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: 1 }, context)
  }
}
