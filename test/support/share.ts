// What the tests of a file share, started in the first lines of the file: `const target = share(await startHttpTarget())`. What one test
// starts for itself ends with the test: `await using target = await startHttpTarget()`.

const started: AsyncDisposable[] = []
// Limit for all of them together. Large databases and process trees end slowly on a busy machine.
const endTimeoutMs = 600_000

// jest calls such hooks in the order of their registration, so there is one for all.
afterAll(async () => {
  for (const resource of started.splice(0).toReversed()) await resource[Symbol.asyncDispose]()
}, endTimeoutMs)

/** Ends a resource when the last test of the file has ended. What was started last ends first. */
export const share = <T extends AsyncDisposable>(resource: T): T => {
  started.push(resource)
  return resource
}
