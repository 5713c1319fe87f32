import type { Connector } from '../connector.ts'
import { folderPrefix } from '../shared/place.ts'
import { sidecarProperties } from '../shared/properties.ts'
import { sftpConfig, sftpCredentials, sftpExample, type SftpConfig, type SftpCredentials } from './schema.ts'

// Imports ssh2, which costs a process 18 MiB and 0.08 CPU-s.
const load = () => import('./deliver.ts')

/** Folders of SSH servers. */
export const sftp: Connector<SftpConfig, SftpCredentials> = {
  kind: 'sftp',
  config: sftpConfig,
  credentials: sftpCredentials,
  boundKeys: ['host', 'port', 'host_key_sha256', 'algorithms'],
  pinnedKeys: ['host_key_sha256'],
  example: sftpExample,
  deliver: async (...attempt) => (await load()).deliver(...attempt),
  properties: sidecarProperties,
  updateMetadata: async (...update) => (await load()).updateMetadata(...update),
  read: async (...reading) => (await load()).read(...reading),
  placeKeys: ['directory', 'file_names'],
  // Two accounts may have other folders by the same name, which only the server knows.
  placeOf: ({ host, port, directory }) => ({ container: `${host}:${port}`, prefix: folderPrefix(directory) }),
  probe: async (...attempt) => (await load()).probe(...attempt),
}
