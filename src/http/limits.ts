/** Limit of the request line and the headers together. A signed URL with long names needs 4 KiB. */
export const maxHeaderBytes = 64 * 1_024

/** Time in which a client must send its request headers. */
export const headersTimeoutMs = 30_000

/** Headers of every response, unless the surface that answers sets its own. */
export const safeHeaders = { 'x-content-type-options': 'nosniff', 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" }
