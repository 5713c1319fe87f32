import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { findBreaks } from '../../script/check-api.ts'

const program = process.env['OASDIFF_BIN'] ?? 'oasdiff'
const isInstalled = (() => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    console.warn('oasdiff is not installed: go install github.com/oasdiff/oasdiff@v1.37.0, or set OASDIFF_BIN')
    return false
  }
})()
const description = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')

test('a description without an operation breaks the clients of the one before, and the other way around does not', () => {
  if (!isInstalled) return
  const { paths, ...rest } = JSON.parse(description) as { paths: Record<string, unknown> }
  const { '/stats': _, ...others } = paths
  const smaller = JSON.stringify({ ...rest, paths: others })
  expect(findBreaks(program, description, smaller)).toMatch(/GET \/stats: /)
  expect(findBreaks(program, smaller, description)).toBe('')
  expect(findBreaks(program, description, description)).toBe('')
})
