import { cutText } from '../../base/text.ts'

// What targets say about refusals that pass by themselves, in words, because they have one status or code for all refusals.

/** The words of a policy that denies. It names the place of the document, which may contain any of the words below. */
export const deniesPlainly = /not authorized to perform|explicit deny/i
/** No room. Backblaze B2 answers `AccessDenied` "Transaction cap exceeded", MinIO `XMinioAdminBucketQuotaExceeded`, Ceph 403 `QuotaExceeded`. */
export const saysFull =
  /quota|\bcap exceeded|storage.?(?:is )?full|(?:insufficient|not enough|out of|no) ?(?:storage|disk)? ?(?:space|capacity)|(?:storage|usage|disk).?limit|disk full/i
/** Load and limits. */
export const saysBusy =
  /throttl|too.?many|slow.?down|(?:rate|request|requests|bandwidth|traffic|qps|frequency|connection)s?.?(?:rate.?)?limit|limit.?(?:exceeded|reached)|rate.?exceeded|try.?again|retry|temporar|unavailable|timed?.?out|maintenance|overload|read.?only mode|too much traffic/i
/** Damage on the way. */
export const saysDamaged =
  /(?:checksum|digest|sha-?256|sha-?1|md5|crc)[^.]*(?:invalid|mismatch|not match|differ|wrong|incorrect|fail)|(?:mismatch|not match|incorrect)[^.]*(?:checksum|digest|sha-?256|md5|crc)/i
/** Clocks that differ. */
export const saysClock =
  /signature (?:has )?(?:expired|not yet)|(?:earlier|later) than|skew|request.?time|request date|\bclocks?\b|request has expired|not yet valid|timestamp|\b(?:url|link) (?:has )?expired/i

const saysLocked = /\block(?:ed)? (?:by|for)|in use by|file (?:is )?in use|being used|sharing violation|checked out/i
// Words with which some of these mean something else: a length, or that nothing is to be sent again.
const saysFinal =
  /\b(?:not|n't|never|non|no).?retr|(?:size|length)s?\b.{0,20}\b(?:limit|exceed|maximum)|\btoo (?:large|long|big)\b|permanent/i

// A page may be long. What it says stands at its beginning.
const readMaxCharacters = 2_000

/** Returns true if the text of a refusal says that it passes: no room, limits, load, locks, damage on the way, clocks. */
export const saysThatItPasses = (text: string): boolean => {
  const said = cutText(text, readMaxCharacters)
  if (deniesPlainly.test(said) || saysFinal.test(said)) return false
  return [saysFull, saysBusy, saysLocked, saysDamaged, saysClock].some((words) => words.test(said))
}
