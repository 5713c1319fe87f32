/** The latest documents of an enrichment by which it is judged. */
const judgedDocuments = 5

/**
 * SQL: the latest documents of an enrichment whose wait has ended, or whose enrichment has, as document_id, steps and is_missed: nothing
 * answered a call, nothing was found until the end, or the document was not tried for a minute, because the system fails for others. A document
 * that has no link yet counts as neither before its end, and one that the enrichment is not for never does.
 * @param enrichmentId SQL of the id
 */
export const latestEnriched = (enrichmentId: string) => `
  select
    document_id, steps,
    document_enrichments.status = 'failed'
      or (document_enrichments.status <> 'complete' and (attempts = 0 or steps @> '[{"status": "failed"}]')) as is_missed
  from document_enrichments
  where enrichment_id = ${enrichmentId}
    and document_enrichments.status <> 'skipped'
    and (
      document_enrichments.status <> 'pending'
      or (waits_until <= now() and (attempts > 0 or updated_at <= now() - interval '1 minute'))
    )
  order by document_id desc
  limit ${judgedDocuments}
`

/** SQL: whether an enrichment fails: it has missed its latest documents. */
export const isFailing = (enrichmentId: string) => `
  coalesce((select bool_and(is_missed) from (${latestEnriched(enrichmentId)}) as latest), false)
`
