import { readConfig } from '../../src/config/config.ts'
import { secretsIn } from '../../src/connectors/shared/errors.ts'
import { testTarget } from '../../src/routing/targets.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { installationId } from './payloads.ts'
import { loadRigs } from './rig.ts'

const installation = { id: async () => installationId }

type Settings = Record<string, unknown>

// An operator waits for the result.
const promptlyMs = 15_000

/** Message of a successful test: what the target got, and what it did not get. */
const successes: Record<string, RegExp> = {
  objstore: /wrote 2 objects to the bucket .*, and looked at them\. It removed them\. No probe remains\.$/,
  blob: /wrote 2 blobs to the container .*, and looked at them\. It removed them\. No probe remains\.$/,
  teamsite: /stored a file in the library Documents, in one request and in an upload session, and removed it\. No file remains\.$/,
  drive: /stored a file in the folder .*, and removed it\. No file remains\.$/,
  sftp: /wrote a file in the folder .* and removed it\./,
  directory: /wrote a file in the folder .* and removed it, on the machine of this API process\./,
  email: /accepted .*the sender and all recipients\. No mail was sent/,
  'content-server':
    /created a document in the repository Z1, told its size, took a second component, and deleted it\. No document remains\.$/,
  webhook: /answered 2\d\d to a ping.* was delivered to it\. No document was sent: that it takes documents in the form .* was not tried\.$/,
}

test.each(await loadRigs())(
  'a test of $kind says what it did and what to correct, within seconds and without a secret',
  async ({ kind, startProbeTarget }) => {
    const { connector, config, credentials, mistakes, stop } = await startProbeTarget()
    const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
    const deps = { outbound, installation, config: readConfig({}) }
    const run = (otherConfig: Settings, otherCredentials: Settings) =>
      testTarget(
        deps,
        connector,
        { config: { ...config, ...otherConfig }, credentials: { ...credentials, ...otherCredentials } },
        { workspace: 'acme/invoices', disconnected: new AbortController().signal },
      )

    expect(await run({}, {})).toMatchObject({ status: 'success', message: expect.stringMatching(successes[kind]!) })
    for (const [mistake, otherConfig, otherCredentials, message] of mistakes) {
      const startedAt = Date.now()
      const result = await run(otherConfig, otherCredentials)
      expect({ mistake, ...result }).toEqual({
        mistake,
        status: 'failed',
        message: expect.stringMatching(message),
        errorCode: expect.any(String),
      })
      expect(Date.now() - startedAt).toBeLessThan(promptlyMs)
      for (const secret of secretsIn(connector.credentials, { ...credentials, ...otherCredentials })) {
        expect(result.message).not.toContain(secret)
      }
    }
    await outbound.close()
    await stop()
  },
)
