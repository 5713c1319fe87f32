// A document without a delivery reached nobody, so it is discarded and not delivered. Its bytes may be kept for reading:
// content_id tells.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    create or replace function derive_document_status(of_document text) returns text language sql stable as $$
      select case
        when count(*) = 0 then 'discarded'
        when bool_or(status = 'failed') then 'failed'
        when bool_or(status = 'retrying') then 'retrying'
        when bool_or(status in ('pending', 'held')) then 'pending'
        when bool_or(status = 'delivered') then 'delivered'
        else 'failed'
      end
      from deliveries
      where document_id = of_document
    $$
  `)
  await knex.raw(`
    update documents
    set status = 'discarded'
    where status = 'delivered'
      and not exists (
        select
        from deliveries
        where document_id = documents.id
      )
  `)
  await knex.raw(`
    comment on column documents.archive_document_id is
      'Null for a document that was acknowledged but not stored, because no destination was wired to its repository.';
    comment on column documents.content_id is
      'Null for a document that was not stored, and once retention or an erasure has removed the content.';
    comment on index documents_delivered_with_content is
      'Serves the removal of content by age. A delivered document has reached at least one destination.';
  `)
}
