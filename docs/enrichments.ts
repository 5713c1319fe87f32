import { readyEnrichments } from '../console/ready-enrichments.ts'

/** Returns the files of docs/enrichments: the ready enrichments of the console, as `POST /enrichments` takes them. */
export const enrichmentFiles = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(readyEnrichments).map(([key, { name, ...values }]) => [
      `docs/enrichments/${key}.json`,
      `${JSON.stringify({ name, repository_ids: [], ...values }, null, 2)}\n`,
    ]),
  )
