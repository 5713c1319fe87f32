import { adviceOn } from '../../src/domain/advice.ts'

test.each([
  ['credentials_refused', 'save new credentials at destination Archive'],
  ['access_denied', 'give the account of destination Archive the rights it lacks'],
  ['blocked_address', "change the address of destination Archive, or have the relay's operator allow it"],
  ['bucket_missing', 'correct destination Archive'],
  ['config_invalid', 'correct destination Archive'],
  ['http_404', 'correct destination Archive'],
  ['http_503', 'see that destination Archive is well again'],
  ['timeout', 'see that destination Archive is well again'],
  [undefined, 'see that destination Archive is well again'],
])('after %s: %s', (code, what) => {
  expect(adviceOn(code, 'Archive')).toBe(`What to do: ${what}, then retry the document`)
})
