import { fileNameOf } from '../src/connectors/drive/upload-session.ts'
import { targetSegments } from '../src/connectors/shared/target-path.ts'
import { sharePointSegments } from '../src/connectors/teamsite/library.ts'
import { markdownTable } from './generated-table.ts'

/** Names of files that show each rule. The tests of the kinds store files of these names. */
export const sampleNames = [
  'a.pdf',
  'CON.pdf',
  'a:b',
  '"a*b<c>d?e|f".pdf',
  'end.',
  'end ',
  ' a',
  '~draft.pdf',
  'a\\b.pdf',
  '.hidden',
  'Prüfung.pdf',
]

/** Returns the name of a file in the folder `R1` at each kind that makes files. */
export const finalNames = (name: string) => {
  const path = `R1/${name}`
  return {
    any: targetSegments(path).at(-1)!,
    windows: targetSegments(path, { names: 'windows' }).at(-1)!,
    teamsite: sharePointSegments(path).at(-1)!,
    drive: fileNameOf(path),
    driveWindows: fileNameOf(path, 'windows'),
  }
}

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``

/** Returns the table of final names of docs/connectors/README.md. */
export const namesTable = (): string =>
  markdownTable(
    ['name in the folder `R1`', 'directory, sftp, objstore, blob', 'the same with `windows`', 'teamsite', 'drive', 'drive with `windows`'],
    sampleNames.map((name) => {
      const { any, windows, teamsite, drive, driveWindows } = finalNames(name)
      return [name, any, windows, teamsite, drive, driveWindows].map(code)
    }),
  )
