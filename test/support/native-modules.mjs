import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import Runtime from 'jest-runtime'

// What a test file finds without an import.
const jestGlobals = ['afterAll', 'afterEach', 'beforeAll', 'beforeEach', 'describe', 'expect', 'jest', 'test']

// jest itself runs in a realm of its own for each test file. With these of the main realm, its comparisons recognize the values of the tests.
const builtIns =
  'Array ArrayBuffer BigInt Boolean DataView Date Error EvalError Function Map Number Object Promise RangeError ' +
  'ReferenceError RegExp Set String Symbol SyntaxError TypeError URIError WeakMap WeakSet'
const tests = new URL('..', import.meta.url).href
// It holds nothing of a file, and to compile the schemas of openapi.json takes up to a second of processor time.
const contract = new URL('contract.ts', import.meta.url).href
let files = 0

// Each test file loads the modules below test/ again, because they hold what its tests share: a database, a server, a workspace.
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const { url } = resolved
    const isOfFile = url.startsWith(tests) && url.endsWith('.ts') && url !== contract
    return isOfFile ? { ...resolved, url: `${url}?file=${files}` } : resolved
  },
})

/**
 * Runs tests with the module loader of Node instead of the one of jest: the modules of the product and of its packages are loaded once in
 * a worker of jest instead of once for each test file, and as they are in production. Without `jest.mock`, fake timers and coverage of jest.
 */
class NativeModules extends Runtime {
  #environment

  constructor(config, environment, ...rest) {
    for (const name of builtIns.split(' ')) environment.global[name] = globalThis[name]
    super(config, environment, ...rest)
    this.#environment = environment
  }

  unstable_shouldLoadAsEsm(path) {
    return path.endsWith('.ts') || super.unstable_shouldLoadAsEsm(path)
  }

  async unstable_importModule(path) {
    for (const name of jestGlobals) globalThis[name] = this.#environment.global[name]
    files += 1
    return import(pathToFileURL(path).href)
  }
}

// jest loads this file by require.
export { NativeModules as 'module.exports' }
