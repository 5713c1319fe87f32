import { DatabaseError } from 'pg'
import { isOutage, isRefused } from '../../src/db/errors.ts'

const errorOf = (code: string) => Object.assign(new DatabaseError('failed', 6, 'error'), { code })

test.each([
  ['08006', 'the connection was lost'],
  ['25006', 'the server is a standby now'],
  ['53100', 'the disk is full'],
  ['53300', 'there are too many connections'],
  ['57P01', 'the server shuts down'],
  ['58030', 'the disk cannot be read'],
])('SQLSTATE %s is an outage: %s', (code) => {
  expect(isOutage(errorOf(code))).toBe(true)
  expect(isRefused(errorOf(code))).toBe(false)
})

test.each([
  ['42601', 'the statement is wrong'],
  ['23505', 'a unique constraint rejects the row'],
  ['57014', 'the statement was cancelled'],
])('SQLSTATE %s is no outage: %s', (code) => {
  expect(isOutage(errorOf(code))).toBe(false)
  expect(isRefused(errorOf(code))).toBe(true)
})

test.each(['ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ECONNABORTED', 'ETIMEDOUT'])(
  'a connection that ends with %s is an outage, and says nothing about the statement',
  (code) => {
    const thrown = Object.assign(new Error(`read ${code}`), { code })
    expect([isOutage(thrown), isRefused(thrown)]).toEqual([true, false])
  },
)
