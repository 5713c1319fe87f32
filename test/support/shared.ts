// What the tests of a file share, started in the first lines of the file: `const target = shared(await startHttpTarget())`. What one test
// starts for itself ends with the test: `await using target = await startHttpTarget()`.

const started: (() => unknown)[] = []
// For all of them together. Large databases and process trees end slowly on a busy machine.
const endTimeoutMs = 600_000

/** Ends a resource when the last test of the file has ended, by `end` if it is given. What was started last ends first. */
export function shared<T>(resource: T, end: (resource: T) => unknown): T
export function shared<T extends AsyncDisposable>(resource: T): T
export function shared<T>(resource: T, end?: (resource: T) => unknown): T {
  // jest calls such hooks in the order of their registration, so there is one for all.
  if (started.length === 0) afterAll(endAll, endTimeoutMs)
  started.push(() => (end ? end(resource) : (resource as AsyncDisposable)[Symbol.asyncDispose]()))
  return resource
}

const endAll = async (): Promise<void> => {
  for (const end of started.splice(0).toReversed()) await end()
}
