/** Says how a resource ends that is not made by a kit of the tests, for `await using` and `share`. */
export const disposable = <T extends object>(resource: T, end: (resource: T) => unknown): T & AsyncDisposable =>
  Object.assign(resource, {
    [Symbol.asyncDispose]: async () => {
      await end(resource)
    },
  })
