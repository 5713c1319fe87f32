import type { PropertyRules } from '../connectors/connector.ts'
import { fillKnown, type TemplateDocument } from '../domain/template.ts'

/** Returns the properties of a document whose values are known by now, in the form that a kind of destination accepts. */
export const propertiesOf = (
  rules: PropertyRules | undefined,
  templates: Readonly<Record<string, string>>,
  document: TemplateDocument,
): Record<string, string> => {
  const properties: Record<string, string> = {}
  if (!rules) return properties
  for (const [name, value] of Object.entries(templates)) {
    const known = fillKnown(value, document)
    const cleaned = known === undefined ? '' : rules.clean(known, name)
    if (cleaned !== '') properties[name] = cleaned
  }
  return properties
}
