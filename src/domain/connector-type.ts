/** The kinds of target, by the names the API uses. */
export const connectorTypes = ['objstore', 'blob', 'teamsite', 'drive', 'sftp', 'email', 'webhook'] as const

export type ConnectorType = (typeof connectorTypes)[number]
