/**
 * SQL: joins what the enrichments of a document, of `documents`, have found, as `enriched`: `fields`, of which those of the enrichment that was
 * created first count; `is_enriched`; `is_final`, false while one of them may find more; `waits_until`, while deliveries wait for one; and
 * `data_ends_at`. A document without an enrichment has no fields, and is final.
 */
export const enrichedData = `cross join lateral (
      select
        coalesce(
          jsonb_object_agg(field.key, field.value order by enrichment_id desc) filter (where field.key is not null), '{}'
        ) as fields,
        count(enrichment_id) > 0 as is_enriched,
        coalesce(bool_and(document_enrichments.status <> 'pending' or ends_at < now()), true) as is_final,
        max(waits_until) filter (where document_enrichments.status = 'pending') as waits_until,
        max(ends_at) as data_ends_at
      from document_enrichments
      left join lateral jsonb_each(document_enrichments.fields) as field on true
      where document_enrichments.document_id = documents.id
    ) as enriched`
