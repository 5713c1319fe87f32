import { plainValue } from '../../base/text.ts'
import { DeliveryError, type DeliveredCopy, type Payload, type PropertyRules } from '../connector.ts'
import { partFileName, shortened } from './target-path.ts'

/** Returns a value without what a target does not accept, which becomes an underscore. */
export const acceptedValue = (value: string, refused: RegExp, maxCharacters: number): string =>
  plainValue(value.replaceAll(refused, '_'), maxCharacters)

/** Returns the rule for names. @param accepted the names that a target accepts */
export const namesLike =
  (accepted: RegExp, maxCharacters: number, rule: string): PropertyRules['nameIssue'] =>
  (name) =>
    name.length <= maxCharacters && accepted.test(name) ? undefined : rule

/** A file that is written under another name first. */
interface NamedFile {
  name: string
  /** Its name while it is written, see `partFileName`. Identical in every attempt of a delivery. */
  partName: string
}

/** Returns the file of a document. */
export const documentFile = (name: string, deliveryId: string, partFile: string): NamedFile => ({
  name,
  partName: partFileName(name, deliveryId, partFile),
})

/** Returns the file with the properties of a document, a JSON object, in the same folder. None if the document has no properties. */
export const sidecarFiles = (
  name: string,
  { deliveryId, properties }: Pick<Payload, 'deliveryId' | 'properties'>,
  partFile: string,
): (NamedFile & { bytes: Buffer })[] => {
  if (Object.keys(properties).length === 0) return []
  const sidecar = shortened(`${name}.meta.json`)
  const bytes = Buffer.from(`${JSON.stringify(properties, null, 2)}\n`)
  return [{ name: sidecar, partName: partFileName(sidecar, `${deliveryId}.meta`, partFile), bytes }]
}

/** Rules for a file of properties. */
export const sidecarProperties: PropertyRules = {
  nameIssue: () => undefined,
  clean: (value) => plainValue(value, 1_000),
}

/** @throws DeliveryError `copy_missing` if the destination now leads to another place than the document was stored at */
export const requireSameLocation = ({ location }: Pick<DeliveredCopy, 'location'>, path: string): void => {
  if (location === path) return
  throw new DeliveryError('copy_missing', `the document was stored as ${location}, and the destination now leads to ${path}`)
}
