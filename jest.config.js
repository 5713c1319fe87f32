export default {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  transform: {
    '^.+\\.ts$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'es6' } }],
  },
  // .mjs: jest would turn a .ts set-up into CommonJS, and the migrations are imported by URL
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  setupFiles: ['<rootDir>/test/support/one-realm.ts'],
  reporters: ['default', '<rootDir>/test/support/conformance-matrix.mjs'],
  // a bound for what hangs, not for what is slow: the disk of a busy machine can stand still for half a minute, and a test that is
  // abandoned half-way disturbs the ones after it. Milliseconds
  testTimeout: 120_000,
  // what a test file has loaded stays in memory for good: a heap of gigabytes stands still for seconds at a time. A worker that has
  // come this far is followed by a new one
  workerIdleMemoryLimit: '1GB',
}
