import { generateKeyPairSync } from 'node:crypto'
import { type Row } from './world.ts'

// Behaviour that the specification leaves open: config and credentials of destinations.

const privateKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ type: 'pkcs8', format: 'pem' })

type Shape = [config: object, credentials: object]

const tenant = { tenant_id: '00000000-0000-0000-0000-000000000000', client_id: 'b', client_secret: 'c' }
/** Complete config and credentials of each connector type. */
const shapes: Record<string, Shape[]> = {
  objstore: [
    [
      {
        bucket: 'archive',
        region: 'eu-central-1',
        prefix: 'in',
        endpoint: 'https://s3.example.com',
        path_style: true,
        storage_class: 'STANDARD_IA',
        server_side_encryption: 'aws:kms',
        kms_key_id: 'k',
      },
      { access_key_id: 'A', secret_access_key: 'B', session_token: 'C' },
    ],
  ],
  blob: [
    [{ account_url: 'https://acme.blob.core.windows.net', container: 'archive', prefix: 'in' }, { account_key: 'QQ==' }],
    [{ account_url: 'https://acme.blob.core.windows.net', container: 'archive' }, { sas_token: 'sv=2024&sig=x' }],
    [{ account_url: 'https://acme.blob.core.windows.net', container: 'archive' }, tenant],
  ],
  teamsite: [
    [{ site_url: 'https://example.sharepoint.com/sites/a', document_library: 'Documents', folder: 'in', cloud: 'global' }, tenant],
  ],
  drive: [
    [
      { folder_id: 'abc', subject: 'ada@example.com' },
      {
        service_account: {
          type: 'service_account',
          client_email: 'relay@example.com',
          private_key: privateKey,
          token_uri: 'https://oauth2.googleapis.com/token',
        },
      },
    ],
  ],
  sftp: [
    [
      { host: 'sftp.example.com', port: 2022, directory: 'in' },
      { username: 'ada', password: 'x' },
    ],
    [{ host: 'sftp.example.com' }, { username: 'ada', password: 'x' }],
  ],
  email: [
    [
      {
        host: 'mail.example.com',
        port: 587,
        tls: 'starttls',
        from: 'relay@example.com',
        to: ['ada@example.com'],
        cc: ['eve@example.com'],
        subject_template: '{doc_id}',
        max_attachment_bytes: 1_000_000,
      },
      { username: 'ada', password: 'x' },
    ],
    [{ host: 'mail.example.com', from: 'relay@example.com', to: ['ada@example.com'] }, {}],
  ],
  webhook: [
    [
      { url: 'https://example.com/in', method: 'PUT', format: 'multipart', headers: { 'x-a': 'b' } },
      { secret: 'whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0', bearer_token: 'x' },
    ],
    [{ url: 'https://example.com/in' }, { header_name: 'x-key', header_value: 'y' }],
    [
      { url: 'https://example.com/in', format: 'json' },
      { username: 'ada', password: 'x' },
    ],
  ],
}

const acceptsKeys = (type: string, [config, credentials]: Shape, index: number): Row => [
  `destinations: ${type} accepts its documented keys and no others (${index + 1})`,
  async ({ acme }) => {
    const body = { name: 'A', connector_type: type, config, credentials }
    const { status, text: answer } = await acme.call('POST', '/destinations', body)
    expect({ status, answer }).toEqual({ status: 201, answer: expect.any(String) })
    expect(await acme.statusOf('POST', '/destinations', { ...body, config: { ...config, colour: 'red' } })).toBe(422)
    expect(await acme.statusOf('POST', '/destinations', { ...body, credentials: { ...credentials, colour: 'red' } })).toBe(422)
  },
]

export const decidedTargetRows: Row[] = Object.entries(shapes).flatMap(([type, examples]) =>
  examples.map((example, index) => acceptsKeys(type, example, index)),
)
