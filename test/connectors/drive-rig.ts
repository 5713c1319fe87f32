import { createDrive } from '../../src/connectors/drive.ts'
import { createAuthority } from '../support/certificates.ts'
import { startDriveDouble } from '../support/drive-double.ts'

export type DriveRig = Awaited<ReturnType<typeof startDriveRig>>

/** The connector as it is, only that Google's hosts are that of the double. */
export const startDriveRig = async () => {
  const authority = await createAuthority()
  const double = await startDriveDouble(await authority.issue('DNS:localhost,IP:127.0.0.1'))
  const connectorAt = (port?: number) => createDrive(double.rootAt(port))
  const connector = connectorAt()
  const target = ({ config = {}, account = {}, port = double.port }: { config?: object; account?: object; port?: number } = {}) => ({
    config: connector.config.parse({ folder_id: double.folders.shared, ca_certificate: authority.certificate, ...config }),
    credentials: connector.credentials.parse({ service_account: { ...double.keyFile(port), ...account } }),
  })
  return {
    double,
    connector,
    connectorAt,
    target,
    reset: () => {
      double.files.clear()
      double.sessions.clear()
      double.unsearchable.clear()
      double.faults.length = 0
      double.asked.length = 0
    },
    stop: async () => {
      await double.stop()
      await authority.remove()
    },
  }
}
