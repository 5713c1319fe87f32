import { types } from 'node:util'

// jest runs tests in a separate realm, where errors created by Node are not instances of `Error`. The AWS SDK keeps only the text of such
// an error. This `instanceof` recognizes native errors of every realm, so that tests behave as production does.
Object.defineProperty(Error, Symbol.hasInstance, {
  value(this: unknown, candidate: unknown) {
    return this === Error ? types.isNativeError(candidate) : Function.prototype[Symbol.hasInstance].call(this as Error, candidate)
  },
})
