import { availableParallelism } from 'node:os'

// A test belongs to a tier by the end of its name:
//   *.test.ts          unit: needs no set-up
//   *.db.test.ts       needs PostgreSQL
//   *.system.test.ts   needs Temporal, another server, or the relay as a process
//   *.cluster.system.test.ts    needs the cluster that only script/test --temporal postgres starts
//   *.release.test.ts  what is published, whole installations and large data. CI of a change does not run it (CONTRIBUTING.md)
//   *.measured.release.test.ts  measures, so these files run one at a time, when no other test runs
// The set-up of a tier runs only if tests of that tier run.
const common = {
  testEnvironment: 'node',
  transform: {},
  runtime: '<rootDir>/test/support/native-modules.mjs',
}
// .mjs: jest would turn a set-up in TypeScript into CommonJS, which lacks import.meta.
const setUp = (tier) => ({
  globalSetup: `<rootDir>/test/support/set-up-${tier}.mjs`,
  globalTeardown: '<rootDir>/test/support/tear-down.mjs',
})

// The user of the image cannot read the client certificates of the cluster.
const isCluster = process.env.TEST_TEMPORAL === 'postgres'
const leftOut = ['/node_modules/', ...(isCluster ? [] : ['\\.cluster\\.system\\.test\\.ts$'])]

export default {
  projects: [
    { ...common, displayName: 'unit', testMatch: ['<rootDir>/test/**/!(*.db|*.system|*.release).test.ts'] },
    { ...common, displayName: 'db', testMatch: ['<rootDir>/test/**/*.db.test.ts'], ...setUp('db') },
    {
      ...common,
      displayName: 'system',
      testMatch: ['<rootDir>/test/**/*.system.test.ts'],
      testPathIgnorePatterns: leftOut,
      ...setUp('system'),
    },
    { ...common, displayName: 'release', testMatch: ['<rootDir>/test/**/!(*.measured).release.test.ts'], ...setUp('release') },
    {
      ...common,
      displayName: 'measured',
      testMatch: ['<rootDir>/test/**/*.measured.release.test.ts'],
      runner: '<rootDir>/test/support/one-at-a-time.mjs',
      ...setUp('release'),
    },
  ],
  reporters: ['default', '<rootDir>/test/support/conformance-matrix.mjs'],
  testSequencer: '<rootDir>/test/support/slowest-first.mjs',
  // A limit for tests that hang, not for slow ones. The disk of a busy machine can stall for half a minute, and an aborted test disturbs
  // the tests after it. Milliseconds.
  testTimeout: 120_000,
  // The modules that a test file has loaded are never freed, and the garbage collection of a heap of gigabytes pauses for seconds. A
  // worker that has grown to this size is replaced.
  workerIdleMemoryLimit: '1GB',
  // Two more than there are processors, because a file of system tests uses 0.6 of a processor on average and waits for servers and timers otherwise.
  // Not with a cluster, whose four services all files share.
  maxWorkers: availableParallelism() + (isCluster ? 0 : 2),
}
