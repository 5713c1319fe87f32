import { countOf } from '../../../src/base/count-of.ts'
import { isGood, type Report, type Result } from './run.ts'

const marks: Record<Result['status'], string> = { passed: 'ok  ', failed: 'FAIL', not_offered: '-   ', not_checked: '-   ' }

/** Returns the lines of a result for people. */
export const describeResult = ({ id, title, status, message, remedy, duration_ms: ms }: Result): string[] => {
  const reason = {
    passed: '',
    failed: `: ${message}`,
    not_offered: `: not offered (${message})`,
    not_checked: `: not checked (${message})`,
  }
  const time = status === 'not_checked' ? '' : `  ${ms} ms`
  return [`${marks[status]}  ${id}: ${title}${reason[status]}${time}`, ...(remedy === null ? [] : [`      Do: ${remedy}`])]
}

/** Returns the lines that end a run. */
export const describeEnd = (report: Report): string[] => {
  const { passed, failed, not_offered: notOffered, not_checked: notChecked, duration_ms: ms } = report
  const server = report.server === null ? '' : ` (${report.server})`
  return [
    `${report.url}, repository ${report.cont_rep}${server}, ${report.signed ? 'signed' : 'unsigned'}, profile ${report.profile}`,
    `${passed} passed, ${failed} failed, ${notOffered} not offered, ${notChecked} not checked, in ${(ms / 1_000).toFixed(1)} s.`,
    ...(report.interrupted ? ['The run was stopped before its end.'] : []),
    leftBehind(report),
  ]
}

const leftBehind = ({ left_behind: left }: Report): string =>
  left.length === 0
    ? 'Nothing was left behind: every document of the run is deleted.'
    : `The server may still have ${countOf(left.length, 'document', 'documents')}: ${left.join(', ')}`

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for HTML and XML. A control character, which XML cannot contain, becomes a question mark. */
const escape = (text: string): string =>
  text.replaceAll(/[&<>"]/g, (character) => entities[character]!).replaceAll(/(?![\t\n\r])\p{Cc}/gu, '?')

const seconds = (ms: number) => (ms / 1_000).toFixed(3)

/** Returns JUnit XML, for CI servers. What is not offered or not checked is skipped. */
export const junitOf = (report: Report): string => {
  const skipped = report.not_offered + report.not_checked
  const all = `tests="${report.results.length}" failures="${report.failed}" skipped="${skipped}" time="${seconds(report.duration_ms)}"`
  const outcome = ({ status, message, remedy }: Result) => {
    if (status === 'passed') return ''
    const text = escape(message ?? '')
    return status === 'failed' ? `<failure message="${text}">${escape(remedy ?? '')}</failure>` : `<skipped message="${text}"/>`
  }
  const cases = report.results.map(
    (result) =>
      `    <testcase classname="content-server-check.${report.profile}" name="${result.id}: ${escape(result.title)}" time="${seconds(result.duration_ms)}">${outcome(result)}</testcase>`,
  )
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${all}>`,
    `  <testsuite name="content-server-check: ${escape(report.url)} ${escape(report.cont_rep)}" ${all} timestamp="${report.started_at.slice(0, 19)}">`,
    ...cases,
    `    <system-out>${escape(describeEnd(report).join('\n'))}</system-out>`,
    '  </testsuite>',
    '</testsuites>',
  ].join('\n')
}

const styles = `
  body { font: 15px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; background: #fff }
  h1 { font-size: 1.4rem } dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem } dt { color: #57606a } dd { margin: 0 }
  table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid #d0d7de }
  td:nth-child(4) { text-align: right; white-space: nowrap } td:first-child { white-space: nowrap } code { font-size: .9em }
  .passed td:first-child { color: #116329 } .failed td:first-child { color: #a40e26; font-weight: 600 } .failed { background: #fff5f5 }
  .not_offered, .not_checked { color: #57606a }
  @media (prefers-color-scheme: dark) {
    body { background: #0d1117; color: #e6edf3 } dt, .not_offered, .not_checked { color: #9198a1 } th, td { border-color: #3d444d }
    .failed { background: #25171c } .failed td:first-child { color: #ff7b72 } .passed td:first-child { color: #3fb950 }
  }`

const words: Record<Result['status'], string> = {
  passed: 'passed',
  failed: 'failed',
  not_offered: 'not offered',
  not_checked: 'not checked',
}

/** Returns a page that needs nothing else: no script, no other file. */
export const htmlOf = (report: Report): string => {
  const facts: [name: string, value: string][] = [
    ['Server', report.server ?? 'unknown'],
    ['Address', report.url],
    ['Repository', report.cont_rep],
    ['Requests', report.signed ? 'signed' : 'unsigned'],
    ['Profile', report.profile],
    ['Begin', `${report.started_at.slice(0, 19).replace('T', ' ')} UTC, ${(report.duration_ms / 1_000).toFixed(1)} s`],
    ['Checks of', `Document Relay ${report.version}`],
    ['Left behind', leftBehind(report)],
  ]
  const rows = report.results.map(({ id, title, status, message, remedy, duration_ms: ms }) => {
    const found = message === null ? '' : `<br>${escape(message)}`
    const todo = remedy === null ? '' : `<br><strong>Do:</strong> ${escape(remedy)}`
    return `<tr class="${status}"><td>${words[status]}</td><td><code>${id}</code></td><td>${escape(title)}${found}${todo}</td><td>${ms} ms</td></tr>`
  })
  const verdict = isGood(report) ? 'passed' : 'failed'
  const [, counts] = describeEnd(report)
  return [
    '<!doctype html>',
    '<html lang="en">',
    `<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Content server ${escape(report.cont_rep)}: ${verdict}</title><style>${styles}</style></head>`,
    `<body><h1>Check of a content server: ${verdict}</h1>`,
    `<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${escape(value)}</dd>`).join('')}</dl>`,
    `<p>${escape(counts!)}</p>`,
    '<table><thead><tr><th>Result</th><th>Check</th><th>What a content server does</th><th>Time</th></tr></thead><tbody>',
    ...rows,
    '</tbody></table></body></html>',
  ].join('\n')
}
