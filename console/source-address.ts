// What an administrator enters in the source system. Pure, so that it can be tested without a browser.

export interface SourceAddress {
  host: string
  /** The port as the source system asks for it: that of HTTP or of HTTPS. */
  port: string
  isTls: boolean
  /** Path of the receiver without the slash at its beginning. */
  script: string
  /** True if the host is a name of the machine itself, which leads another machine nowhere. */
  isLocal: boolean
}

/**
 * Returns where the source system finds the receiver of a workspace.
 * @param consoleUrl address of the console, which the same server serves: `https://relay.example.com/console/`
 */
export const sourceAddress = (consoleUrl: string, userSlug: string, workspaceSlug: string): SourceAddress => {
  const url = new URL(`../receiver/${encodeURIComponent(userSlug)}/${encodeURIComponent(workspaceSlug)}`, consoleUrl)
  const isTls = url.protocol === 'https:'
  return {
    host: url.hostname,
    port: url.port || (isTls ? '443' : '80'),
    isTls,
    script: url.pathname.slice(1),
    isLocal: /^(localhost|127\.[\d.]+|\[::1\]|.*\.localhost)$/.test(url.hostname),
  }
}
