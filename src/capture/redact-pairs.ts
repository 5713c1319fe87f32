import { isSensitive, mention, redacted } from './sensitive-names.ts'
import { pauseAfterSteps, type Steps } from './steps.ts'

const percentEncoded = /%([0-9a-f]{2})/gi

const decodeName = (name: string): string =>
  name.includes('%') ? name.replaceAll(percentEncoded, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16))) : name

/**
 * Redacts `name=value` pairs that are separated by `&`: a query string or a form. Names may be percent-encoded.
 * @param isRedacted decides by the decoded name
 */
export function* redactPairs(text: string, isRedacted: (name: string) => boolean = isSensitive): Steps<string> {
  const isPauseDue = pauseAfterSteps()
  if (!mention.test(text) && !text.includes('%')) return text
  const output: string[] = []
  let kept = 0
  for (let equals = text.indexOf('='); equals >= 0;) {
    if (isPauseDue()) yield
    const start = text.lastIndexOf('&', equals) + 1
    const next = text.indexOf('&', equals)
    const end = next < 0 ? text.length : next
    if (isRedacted(decodeName(text.slice(start, equals)))) {
      output.push(text.slice(kept, equals + 1), redacted)
      kept = end
    }
    equals = text.indexOf('=', end)
  }
  return output.join('') + text.slice(kept)
}
