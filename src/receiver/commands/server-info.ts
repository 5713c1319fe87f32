import type { Source } from '../../db/sources.ts'
import { plainText, type Answer } from '../answer.ts'
import { dateOf, timeOf } from '../archived.ts'
import { escapeHtml, page } from '../html.ts'
import { asLine } from '../lines.ts'

export interface ServerInfo {
  repositories: Source['repository'][]
  pVersion: string
  asHtml: boolean
  now: Date
}

const serverVersion = '1.0'
const serverBuild = '1'
const signed = 'signatures are required'
const unsigned = 'signatures are not looked at'

/** What an administrator's connection test asks for: the server, then one line a repository. */
export const serverInfo = ({ repositories, pVersion, asHtml, now }: ServerInfo): Answer => {
  const lines = [
    {
      serverStatus: 'running',
      serverVendorId: 'Document Relay',
      serverVersion,
      serverBuild,
      serverTime: timeOf(now),
      serverDate: dateOf(now),
      serverStatusDescription: '',
      pVersion,
    },
    ...repositories.map(({ repoId, name, status, signatureVerification }) => ({
      contRep: repoId,
      contRepDescription: name,
      contRepStatus: status === 'active' ? 'running' : 'stopped',
      contRepStatusDescription: signatureVerification ? signed : unsigned,
      pVersion,
    })),
  ]
  return asHtml
    ? { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8' }, body: asPage(lines) }
    : { status: 200, headers: { 'Content-Type': plainText }, body: lines.map(asLine).join('') }
}

type Line = Record<string, string>

const asPage = (lines: Line[]): string => {
  const tables = lines.map((line) => {
    const rows = Object.entries(line).map(([key, value]) => `<tr><th>${key}</th><td>${escapeHtml(value)}</td></tr>`)
    return `<table>${rows.join('')}</table>`
  })
  return page('Document Relay', tables.join(''))
}
