/** The header that names the installations that a request has come from, separated by commas. */
export const hopsHeader = 'x-relay-hops'

/** Returns true if a header names this installation: the request is a delivery of its own. */
export const hasPassed = (hops: string, installationId: string): boolean => hops.split(',').some((hop) => hop.trim() === installationId)
