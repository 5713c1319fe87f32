import { createHash, verify } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { UserError } from '../base/errors.ts'
import { openVerdicts } from '../domain/document-migration.ts'
import { linesOf } from './lines.ts'
import {
  noVerdicts,
  reportFormat,
  signedText,
  type ReportHeader,
  type ReportRow,
  type ReportSignature,
  type ReportTotals,
} from './report.ts'
import { fingerprintOf } from './signing-key.ts'

export interface VerifiedReport {
  header: ReportHeader
  totals: ReportTotals
  /** Fingerprint of the key that has signed the report. */
  fingerprint: string
  /** False if only the key in the report itself vouches for it. */
  isKeyGiven: boolean
  /** Rows that need a decision, and rows without a verdict, by business object. */
  open: ReportRow[]
}

type Line = ReportHeader | ReportRow | ReportTotals | ReportSignature

/**
 * Checks a report without a network or a database: that it is complete, that its signature is that of the key, that its totals are those of
 * its rows, and that it has as many rows as its lists.
 * @param publicKey PEM of the installation's key; without it, the key in the report is used, which anybody could have written there
 * @throws `UserError` that says what is wrong
 */
export const verifyReport = async (path: string, publicKey?: string): Promise<VerifiedReport> => {
  const hash = createHash('sha256')
  const counted = { rows: 0, ...noVerdicts(), open: 0 }
  const open: ReportRow[] = []
  let header: ReportHeader | undefined
  let totals: ReportTotals | undefined
  let signature: ReportSignature | undefined
  for await (const bytes of linesOf(createReadStream(path) as AsyncIterable<Buffer>, maxLineBytes, tooLong)) {
    if (signature) throw wrong('it goes on after its signature')
    const line = parse(bytes)
    if (line.type === 'signature') signature = line
    else hash.update(bytes)
    if (!header && line.type !== 'header') throw wrong('it does not begin with a header')
    if (line.type === 'header') header = line
    if (line.type === 'totals') totals = line
    if (line.type !== 'row') continue
    counted.rows += 1
    counted[line.verdict ?? 'open'] += 1
    if (line.verdict === null || openVerdicts.includes(line.verdict)) open.push(line)
  }
  if (!header || header.format !== reportFormat || !Array.isArray(header.lists)) throw wrong(`it is not of the format ${reportFormat}`)
  if (!totals || !signature) throw wrong('its end is missing')
  const sha256 = hash.digest('hex')
  const key = publicKey ?? header.public_key
  if (signature.sha256 !== sha256 || !isSignedBy(key, sha256, signature.signature)) {
    throw wrong(publicKey === undefined ? 'it was changed after it was signed' : 'it was changed, or another key has signed it')
  }
  const { type: _, ...told } = totals
  if (JSON.stringify(told) !== JSON.stringify(counted)) throw wrong('its totals are not those of its rows')
  const listed = header.lists.reduce((sum, { rows }) => sum + rows, 0)
  if (listed !== totals.rows) throw wrong(`its lists have ${listed} rows, and it has ${totals.rows}`)
  const byObject = ({ erp_object_type: type, erp_object_id: id, barcode, doc_id: docId }: ReportRow) => `${type} ${id} ${barcode} ${docId}`
  const sorted = open.toSorted((one, other) => byObject(one).localeCompare(byObject(other), 'en'))
  return { header, totals, fingerprint: fingerprintOf(key), isKeyGiven: publicKey !== undefined, open: sorted }
}

const wrong = (what: string) => new UserError(`The report is not valid: ${what}.`)

// The longest line is the header. It has some 200 bytes for each list.
const maxLineBytes = 4 * 1024 * 1024
const tooLong = () => wrong('a line has more than 4 MiB')

const parse = (bytes: Buffer): Line => {
  let line: unknown
  try {
    line = JSON.parse(bytes.toString())
  } catch {
    throw wrong('a line is not JSON')
  }
  if (typeof line !== 'object' || line === null) throw wrong('a line is not an object')
  return line as Line
}

const isSignedBy = (key: string, sha256: string, signature: string): boolean => {
  try {
    return verify(null, Buffer.from(signedText(sha256)), key, Buffer.from(signature, 'base64'))
  } catch {
    throw new UserError('The public key is not an Ed25519 key in PEM.')
  }
}
