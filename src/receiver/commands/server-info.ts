import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RepositorySummary } from '../../archive/receiving-repository.ts'
import { asciiLine, escapeHtml, htmlPage, plainText, type Answer } from '../answer.ts'
import { dateOf, timeOf } from '../document-headers.ts'

interface ServerInfo {
  repositories: RepositorySummary[]
  pVersion: string
  asHtml: boolean
  now: Date
}

const serverVersion = '1.0'
const serverBuild = '1'
// A line takes 5 µs. Other requests have their turn between them.
const linesPerTurn = 500
const signed = 'signatures are required'
const unsigned = 'signatures are not verified'
// A source system that moves documents deletes its own after a 201. The status stays `running`: documents that are here can be read.
const discarding = 'documents are discarded: no connection leads to a destination'
const holding = 'documents are stored and not forwarded: no connection is active'

/** Answers an administrator's connection test: one line for the server, then one line per repository. */
export const serverInfo = async ({ repositories, pVersion, asHtml, now }: ServerInfo): Promise<Answer> => {
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
    ...repositories.map(({ repoId, name, status, signatureVerification, routes }) => ({
      contRep: repoId,
      contRepDescription: name,
      contRepStatus: status === 'active' ? 'running' : 'stopped',
      contRepStatusDescription: [signatureVerification ? signed : unsigned, ...(status === 'active' ? whereTo(routes) : [])].join('; '),
      pVersion,
    })),
  ]
  const formatted: string[] = []
  for (const [index, line] of lines.entries()) {
    if (index > 0 && index % linesPerTurn === 0) await nextTurn()
    formatted.push(asHtml ? tableOf(line) : asciiLine(line))
  }
  const text = formatted.join('')
  return asHtml
    ? { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8' }, body: htmlPage('Document Relay', text) }
    : { status: 200, headers: { 'Content-Type': plainText }, body: text }
}

/** Says what becomes of a document, unless it is forwarded. */
const whereTo = (routes: RepositorySummary['routes']): string[] => {
  if (routes.length === 0) return [discarding]
  return routes.some(({ isActive }) => isActive) ? [] : [holding]
}

type Line = Record<string, string>

const tableOf = (line: Line): string => {
  const rows = Object.entries(line).map(([key, value]) => `<tr><th>${key}</th><td>${escapeHtml(value)}</td></tr>`)
  return `<table>${rows.join('')}</table>`
}
