/** Ready enrichments, from which the form of a new one can start: docs/enrichments, by name. The relay writes them into this module. */
export const readyEnrichments: Record<string, Record<string, unknown>> = {}
