import type { Context } from 'koa'
import { basePathOf, createCookie } from '../../access/cookies.ts'
import { personOf, type SignInSettings } from '../../access/people.ts'
import type { Sessions } from '../../access/sessions.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { methodNotAllowed } from '../../base/refusals.ts'
import type { Config } from '../../config/config.ts'
import type { AttemptLimit } from '../../security/attempt-limit.ts'
import { callbackPath, redirectUriOf, SignInError, type BegunSignIn, type OpenIdProvider } from '../../security/oidc.ts'
import { begunSignIn, openOrUndefined, type KeyRing } from '../../security/seal.ts'

export interface SignInDeps {
  settings: SignInSettings
  provider: Pick<OpenIdProvider, 'begin' | 'finish'>
  /** Counts the sign-ins of an address that have failed: each one may ask the provider, in the name of the relay. */
  failures: AttemptLimit
  sessions: Pick<Sessions, 'startFor'>
  keyRing: KeyRing
  config: Pick<Config, 'RELAY_BASE_URL'>
  log: Log
}

interface SealedSignIn extends BegunSignIn {
  /** Where the person wanted to go, relative to the console. */
  to: string
  /** Milliseconds since 1970. */
  expiresAt: number
}

export const startPath = '/console/sign-in/start'

// Time for a password and a second factor.
const signInMaxMs = 600_000
const toMaxCharacters = 1_000

/** Returns an address below the console, or the console itself if the text leads elsewhere. */
export const localAddress = (text: string, basePath: string): string => {
  const home = new URL(`${basePath}/console/`, 'http://relay.invalid')
  const address = text.length <= toMaxCharacters && URL.canParse(text, home.href) ? new URL(text, home) : home
  const isLocal = address.origin === home.origin && address.pathname.startsWith(home.pathname)
  return isLocal ? address.pathname + address.search : home.pathname
}

/**
 * Creates the sign-in through an OpenID provider: two addresses to which a browser is led. What the answer is checked against is in a cookie
 * of the browser, sealed with RELAY_SECRET_KEYS, so that any API process can check it. A sign-in that fails ends at the sign-in page, which
 * explains it by the fragment of its address.
 */
export const createSignIn = ({ settings, provider, failures, sessions, keyRing, config, log }: SignInDeps) => {
  const basePath = basePathOf(config)
  const cookie = createCookie({ name: 'relay_sign_in', path: basePath + callbackPath, sameSite: 'Lax' }, config)
  const redirectUri = (context: Context) => redirectUriOf(config.RELAY_BASE_URL ?? `${context.protocol}://${context.host}`)

  const lead = (context: Context, to: string) => {
    context.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    context.redirect(to)
  }

  /**
   * Leads to the sign-in page if a step fails. @param to where the person wanted to go
   * @throws AppError 429 after too many failures from one address
   */
  const orExplain = async (context: Context, to: () => string, step: () => Promise<void>): Promise<void> => {
    if (context.method !== 'GET') throw methodNotAllowed(context, ['GET'])
    const retryAfterSeconds = failures.wait(context.ip)
    if (retryAfterSeconds > 0) {
      throw new AppError('rate_limited', 'Too many sign-ins from this address have failed. Try again later.', { retryAfterSeconds })
    }
    try {
      await step()
    } catch (thrown) {
      if (!(thrown instanceof SignInError)) throw thrown
      failures.count(context.ip)
      const { failure, message } = thrown
      const level = failure === 'unavailable' || failure === 'failed' || failure === 'no_access' ? 'warn' : 'info'
      log[level](
        { event: 'console.sign_in_failed', request_id: context.response.get('x-relay-request-id'), failure, reason: message },
        'a sign-in through the provider has failed',
      )
      lead(context, `${to()}#sign-in-failed=${failure}`)
    }
  }

  const openCookie = (context: Context) =>
    openOrUndefined(keyRing, Buffer.from(cookie.read(context) ?? '', 'base64url'), begunSignIn) as SealedSignIn | undefined

  return {
    /** Leads a browser to the provider. */
    start: (context: Context): Promise<void> => {
      const { to: wanted = '', as } = context.query
      const to = localAddress(String(wanted), basePath)
      return orExplain(
        context,
        () => to,
        async () => {
          const { url, begun } = await provider.begin(redirectUri(context), as === 'another')
          const sealed: SealedSignIn = { ...begun, to, expiresAt: Date.now() + signInMaxMs }
          cookie.write(context, keyRing.seal(sealed, begunSignIn).toString('base64url'), signInMaxMs / 1_000)
          lead(context, url.href)
        },
      )
    },

    /** Checks the answer of the provider and starts the session. */
    finish: (context: Context): Promise<void> => {
      const begun = openCookie(context)
      return orExplain(
        context,
        () => begun?.to ?? localAddress('', basePath),
        async () => {
          cookie.remove(context)
          if (!begun || begun.expiresAt <= Date.now()) {
            throw new SignInError('expired', 'the sign-in was begun too long ago, or not in this browser')
          }
          const claims = await provider.finish(new URL(`${redirectUri(context)}${context.search}`), begun)
          const person = personOf(claims, settings)
          if (!person) throw new SignInError('failed', 'the claim sub is not a subject of OpenID Connect')
          if (!(await sessions.startFor(context, person))) {
            const count = [claims[settings.provider.claim] ?? []].flat().length
            throw new SignInError(
              'no_access',
              `the claim ${settings.provider.claim} of ${person.id} has ${count} values, and none of them opens a workspace`,
            )
          }
          context.state['personId'] = person.id
          lead(context, begun.to)
        },
      )
    },
  }
}
