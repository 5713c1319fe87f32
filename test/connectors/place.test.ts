import { createConnectors, placeOfTarget } from '../../src/connectors/index.ts'
import { overlap } from '../../src/connectors/shared/place.ts'

const configOf = (kind: string) => createConnectors().find(kind)!.example.config

/** Returns true if two destinations of a kind, which differ from its example as given, may have documents at the same place. */
const meet = (kind: string, one: object, other: object) => {
  const places = [one, other].map((change) => placeOfTarget(kind, { ...configOf(kind), ...change })!)
  return overlap(places[0]!, places[1]!)
}

const aws = { endpoint: undefined }

test.each<[kind: string, one: object, other: object, expected: boolean]>([
  ['objstore', {}, {}, true],
  ['objstore', { prefix: '' }, { prefix: 'sap/' }, true],
  ['objstore', { prefix: 'sap/' }, { prefix: 'sap/2026/' }, true],
  ['objstore', { prefix: 'sap/' }, { prefix: 'SAP/' }, true],
  ['objstore', { prefix: 'sap' }, { prefix: 'sap/' }, true],
  ['objstore', { prefix: 'in/' }, { prefix: 'out/' }, false],
  ['objstore', { bucket: 'bucket-a' }, { bucket: 'bucket-b' }, false],
  ['objstore', { ...aws, region: 'eu-central-1' }, { ...aws, region: 'us-east-1' }, true],
  ['objstore', aws, { endpoint: 'https://s3.eu-central-1.amazonaws.com' }, true],
  ['objstore', aws, { endpoint: 'https://vpce-1.s3.eu-central-1.vpce.amazonaws.com' }, true],
  ['objstore', aws, { endpoint: 'https://s3.example.com' }, false],
  ['objstore', { endpoint: 'https://s3.example.com' }, { endpoint: 'https://S3.example.com:443/' }, true],
  ['objstore', { endpoint: 'https://s3.example.com' }, { endpoint: 'https://s3.example.com:9000' }, false],
  ['blob', {}, { account_url: `${String(configOf('blob')['account_url'])}/` }, true],
  ['blob', { prefix: 'in/' }, { prefix: 'out/' }, false],
  ['blob', {}, { account_url: 'https://other.blob.core.windows.net' }, false],
  ['blob', { account_url: 'http://127.0.0.1:10000/one' }, { account_url: 'http://127.0.0.1:10000/two' }, false],
  ['directory', { path: '/archive/sap' }, { path: '/archive/sap/' }, true],
  ['directory', { path: '/archive' }, { path: '/archive/sap' }, true],
  ['directory', { path: '/' }, { path: '/archive/sap' }, true],
  ['directory', { path: '/archive/sap' }, { path: '/archive/sap2' }, false],
  ['sftp', { directory: '.' }, { directory: './' }, true],
  ['sftp', { directory: '.' }, { directory: 'in' }, true],
  ['sftp', { directory: 'in/./sap' }, { directory: 'in//sap/' }, true],
  ['sftp', { directory: 'in/../out' }, { directory: 'out' }, true],
  ['sftp', { directory: 'in' }, { directory: 'out' }, false],
  ['sftp', {}, { host: 'other.example.com' }, false],
  ['sftp', { port: 22 }, { port: 2_222 }, false],
  ['drive', {}, { subject: 'clerk@example.com' }, true],
  ['drive', {}, { folder_id: 'another' }, false],
  ['teamsite', { folder: '' }, { folder: 'Incoming' }, true],
  ['teamsite', { folder: 'Incoming' }, { folder: 'incoming/SAP' }, true],
  ['teamsite', { folder: 'Incoming' }, { folder: 'Outgoing' }, false],
  ['teamsite', { document_library: 'Documents' }, { document_library: 'documents' }, true],
  ['teamsite', {}, { site_url: 'https://contoso.sharepoint.com/sites/Other' }, false],
  ['content-server', {}, { document_ids: 'relay' }, true],
  ['content-server', { repository: 'Z1' }, { repository: 'Z2' }, false],
])('%s: %j and %j name one place: %s', (kind, one, other, expected) => {
  expect([meet(kind, one, other), meet(kind, other, one)]).toEqual([expected, expected])
})

test('what keeps no documents, and a config that is not valid, have no place', () => {
  expect([placeOfTarget('webhook', configOf('webhook')), placeOfTarget('email', configOf('email'))]).toEqual([undefined, undefined])
  expect([placeOfTarget('objstore', {}), placeOfTarget('unknown', {})]).toEqual([undefined, undefined])
})
