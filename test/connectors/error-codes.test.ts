import { DeliveryError } from '../../src/connectors/connector.ts'
import { errorCodes, failedThings, remedyFor, type Remedy } from '../../src/connectors/error-codes.ts'

const codes = Object.keys(errorCodes) as (keyof typeof errorCodes)[]

describe('the table of delivery error codes', () => {
  test.each(codes)('the remedy for %s is one sentence that names what to do', (code) => {
    expect(failedThings.map((failed) => remedyFor(code, 'Archive', failed))).toEqual([
      expect.stringMatching(/^[A-Z].+[^.,], then retry the document\.$/),
      expect.stringMatching(/^[A-Z].+[^.,], then retry the deliveries\.$/),
      expect.stringMatching(/^[A-Z].+[^.,]\. The relay tries again by itself\.$/),
      expect.stringMatching(/^[A-Z].+[^.,], then test it again\.$/),
    ])
  })

  test('every remedy names the destination, unless the relay itself has to be corrected', () => {
    const silent = codes.filter((code) => !remedyFor(code, 'Archive', 'ended').includes('destination Archive'))
    expect(silent.map((code) => errorCodes[code].remedy)).toEqual(silent.map(() => 'relay'))
  })
})

test.each<[Remedy, (keyof typeof errorCodes)[]]>([
  ['configuration', ['host_key_mismatch', 'tls_required', 'recipient_refused', 'sender_refused', 'message_too_large', 'folder_full']],
  [
    'configuration',
    ['storage_quota_exceeded', 'bucket_missing', 'container_missing', 'directory_missing', 'wrong_region', 'config_invalid'],
  ],
  ['permission', ['api_disabled', 'access_denied', 'permission_denied']],
  ['target', ['message_refused', 'timeout', 'connection_refused']],
  ['relay', ['link_unavailable', 'content_store_missing', 'unexpected']],
  ['credentials', ['credentials_refused']],
])('the remedy is %s for %j', (remedy, members) => {
  expect(members.map((code) => errorCodes[code].remedy)).toEqual(members.map(() => remedy))
})

test.each([
  ['credentials_refused', 'Save valid credentials for destination Archive'],
  ['access_denied', 'Give the account of destination Archive the missing permissions'],
  [
    'blocked_address',
    'Change the address of destination Archive, or allow its range in RELAY_ALLOWED_PRIVATE_CIDRS if it is meant to be private',
  ],
  ['bucket_missing', 'Create the bucket, or correct the bucket of destination Archive'],
  ['content_store_missing', 'Configure every worker with the content store that the API processes use'],
  ['config_invalid', 'Save destination Archive again with the values that the error names corrected'],
  ['http_302', 'Correct the configuration of destination Archive'],
  ['http_401', 'Save valid credentials for destination Archive'],
  ['http_403', 'Give the account of destination Archive the missing permissions'],
  ['http_404', 'Correct the configuration of destination Archive'],
  ['http_429', 'Check that destination Archive is reachable and accepts requests'],
  ['http_503', 'Check that destination Archive is reachable and accepts requests'],
  ['smtp_451', 'Check that destination Archive is reachable and accepts requests'],
  ['timeout', 'Check that destination Archive is reachable and accepts requests'],
  ['a_code_of_a_newer_worker', 'Check that destination Archive is reachable and accepts requests'],
  ['constructor', 'Check that destination Archive is reachable and accepts requests'],
])('after %s the operator reads: %s', (code, action) => {
  expect(remedyFor(code, 'Archive', 'ended')).toBe(`${action}, then retry the document.`)
})

test('what ended without an error of an attempt has nothing to be repaired, and what goes on or was tested has', () => {
  const target = 'Check that destination Archive is reachable and accepts requests'
  expect(failedThings.map((failed) => remedyFor(null, 'Archive', failed))).toEqual([
    'Retry what is still needed there; acknowledge the rest.',
    'Retry what is still needed there; acknowledge the rest.',
    `${target}. The relay tries again by itself.`,
    `${target}, then test it again.`,
  ])
})

describe('a delivery error', () => {
  test('takes from the table whether it is permanent', () => {
    expect([new DeliveryError('bucket_missing', 'x').permanent, new DeliveryError('timeout', 'x').permanent]).toEqual([true, false])
    expect(new DeliveryError('smtp_550', 'x').permanent).toBe(false)
  })

  test('takes from the thrower what the table leaves open', () => {
    for (const permanent of [true, false]) {
      expect(new DeliveryError('credentials_refused', 'x', { permanent }).permanent).toBe(permanent)
      expect(new DeliveryError('http_400', 'x', { permanent }).permanent).toBe(permanent)
    }
  })
})
