import type { Context } from 'koa'
import type { Config } from '../config/config.ts'

/** Address of the relay as browsers see it. */
type AddressConfig = Pick<Config, 'RELAY_BASE_URL'>

export const baseUrlOf = ({ RELAY_BASE_URL: url }: AddressConfig): URL | undefined =>
  url === undefined || !URL.canParse(url) ? undefined : new URL(url)

/** Returns the path below which browsers see the relay, without a slash at the end. */
export const basePathOf = (config: AddressConfig): string => baseUrlOf(config)?.pathname.replace(/\/+$/, '') ?? ''

interface Cookie {
  name: string
  /** `/` binds the cookie to the host over TLS. */
  path: string
  /** `Lax`: sent when a page of another site leads to the relay. */
  sameSite: 'Strict' | 'Lax'
}

/** Creates a cookie that no script can read. Over TLS, it is sent over TLS only. */
export const createCookie = ({ name, path, sameSite }: Cookie, config: AddressConfig) => {
  const isSecure = (context: Context) => context.secure || baseUrlOf(config)?.protocol === 'https:'
  // A browser accepts a cookie with such a prefix only over TLS, and with __Host- only from this host and for all paths.
  const prefix = path === '/' ? '__Host-' : '__Secure-'
  const nameFor = (context: Context) => `${isSecure(context) ? prefix : ''}${name}`
  const write = (context: Context, value: string, maxAgeSeconds: number) => {
    const attributes = [
      `Path=${path}`,
      'HttpOnly',
      `SameSite=${sameSite}`,
      `Max-Age=${maxAgeSeconds}`,
      ...(isSecure(context) ? ['Secure'] : []),
    ]
    context.append('set-cookie', `${nameFor(context)}=${value}; ${attributes.join('; ')}`)
  }
  return {
    read: (context: Context): string | undefined => context.cookies.get(nameFor(context)),
    write,
    remove: (context: Context): void => write(context, '', 0),
  }
}
