import { types } from 'node:util'

// jest runs tests in a realm of its own. Errors made by Node itself are then no instance of that realm's Error, and the AWS SDK
// keeps nothing but the text of what is no Error. Asking for an error's nature instead gives the answers production gives.
Object.defineProperty(Error, Symbol.hasInstance, {
  value(this: unknown, candidate: unknown) {
    return this === Error ? types.isNativeError(candidate) : Function.prototype[Symbol.hasInstance].call(this as Error, candidate)
  },
})
