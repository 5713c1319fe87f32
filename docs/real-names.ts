import { readFileSync } from 'node:fs'
import { visibleLine } from '../src/base/text.ts'
import { targetSegments } from '../src/connectors/shared/target-path.ts'
import { sharePointSegments } from '../src/connectors/teamsite/library.ts'
import { decodeBytes, decodeText } from '../src/content-server/encoding.ts'
import type { CodePage } from '../src/domain/code-pages.ts'
import { pathSegment } from '../src/domain/fan-out.ts'
import { fileNameOf, readableName } from '../src/domain/file-name.ts'
import { attachmentName } from '../src/http/attachments.ts'
import { markdownTable, withGenerated } from './generated-table.ts'

const letter = '%D0%B6'

/** Names of components as source systems and front ends send them in a URL, each with the code page of its repository. */
export const realNames: [sent: string, codePage?: CodePage][] = [
  ['data'],
  ['Pr%C3%BCfung.pdf'],
  ['Pr%FCfung%20%96%20%80.pdf'],
  ['%84Zitat%93.docx'],
  ['P%F8%EDloha.pdf', 'windows-1250'],
  ['%D1%F7%B8%F2.pdf', 'windows-1251'],
  ['%90%BF%8B%81%8F%91.pdf', 'shift_jis'],
  ['%E8%AB%8B%E6%B1%82%E6%9B%B8.pdf', 'shift_jis'],
  ['%B7%A2%C6%B1.pdf', 'gb18030'],
  ['%B5o%B2%BC.pdf', 'big5'],
  ['%BC%DB%C0%E5.hwp', 'euc-kr'],
  ['ISO%20%25EC%259A%25B4%25EC%2586%25A1.hwp'],
  ['Rechnung%2520M%25C3%25BCller.pdf'],
  ['Rechnung%201%2F2024.pdf'],
  ['C%3A%5CTemp%5CAngebot.pdf'],
  ['a%252Fb.pdf'],
  ['Rabatt%2020%25ab'],
  ['100%25.pdf'],
  ['Angebot%20v1.2'],
  ['Angebot%2001.03.2026'],
  ['CON.pdf'],
  ['aux'],
  ['Wie%3F%20So%3A%20%22a%2Ab%22%20%3Cc%7Cd%3E.pdf'],
  ['Ende.%20.'],
  ['..'],
  ['.htaccess'],
  ['~%24Angebot.docx'],
  ['Rechnung%E2%80%AEfdp.exe'],
  ['Rechnung%F0%9F%A7%BE.pdf'],
  ['Pru%CC%88fung.pdf'],
  [`${letter.repeat(251)}.pdf`],
  [`${'n'.repeat(251)}.pdf`],
]

/** Names of the file of one component. The path of its document ends with `{comp_id}`, unless something else is said. */
export interface FinalNames {
  /** What the relay keeps, finds the component by, and gives another content server. */
  kept: string
  /** sftp, directory, objstore and drive, and `x-relay-path` of a webhook. */
  any: string
  blob: string
  /** sftp, directory, objstore and blob with `file_names` `windows`. */
  windows: string
  teamsite: string
  /** Where a path ends with `{file_name}`, and the attachment of a mail. */
  fileName: string
  download: string
}

/** Returns the names that a component of the type PDF gets. */
export const finalNames = (sent: string, codePage?: CodePage): FinalNames => {
  const kept = decodeText(decodeBytes(sent), codePage)
  const path = pathSegment(readableName(kept))
  const any = targetSegments(path)[0]!
  const document = { compId: kept, contentType: 'application/pdf', fileName: null, fields: {} }
  return {
    kept,
    any,
    blob: any.replace(/\.$/, '%2E'),
    windows: targetSegments(path, { names: 'windows' })[0]!,
    teamsite: sharePointSegments(path)[0]!,
    fileName: targetSegments(pathSegment(fileNameOf(document)))[0]!,
    download: attachmentName(fileNameOf(document)),
  }
}

const shownMax = 48

/** Returns a name as a cell of a table: without invisible characters, and not longer than people read. */
const cell = (name: string): string => {
  const [shown, characters] = [visibleLine(name), Array.from(name).length]
  const text = shown.length <= shownMax ? shown : `${shown.slice(0, 12)}…${shown.slice(-24)}`
  const fence = text.includes('`') ? '``' : '`'
  return `${fence}${text.replaceAll('|', String.raw`\|`)}${fence}${shown.length <= shownMax ? '' : ` (${characters} characters)`}`
}

const columns: [header: string, cellOf: (names: FinalNames) => string][] = [
  ['Name that the relay keeps', ({ kept }) => kept],
  ['sftp, directory, objstore, drive, webhook', ({ any }) => any],
  ['With `file_names` `windows`', ({ windows }) => windows],
  ['teamsite', ({ teamsite }) => teamsite],
  ['`{file_name}`, email', ({ fileName }) => fileName],
  ['Download', ({ download }) => download],
]

/** Returns docs/path-templates.md with the names of real files at every kind of target. */
export const pathTemplatesPage = (): string => {
  const page = readFileSync(new URL('path-templates.md', import.meta.url), 'utf8')
  const rows = realNames.map(([sent, codePage]) => {
    const names = finalNames(sent, codePage)
    return [`${cell(sent)}${codePage === undefined ? '' : `, ${codePage}`}`, ...columns.map(([, cellOf]) => cell(cellOf(names)))]
  })
  const table = markdownTable(['`compId` in the URL', ...columns.map(([header]) => header)], rows)
  return withGenerated(page, 'real names', `\n${table}`)
}
