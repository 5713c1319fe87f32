// People look for a document by what they know: its docId, or the number of an invoice. The keys of a document are rows of a table of their
// own, so that one index serves every kind of key, and its prefixes.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    create function document_keys_of(doc_id text, erp_object_id text) returns setof text language sql immutable parallel safe as $$
      select distinct upper(left(key, 255))
      from (
        values (doc_id), (erp_object_id), (ltrim(erp_object_id, '0')), (substr(erp_object_id, 5)), (ltrim(substr(erp_object_id, 5), '0'))
        union all
        select part
        from regexp_split_to_table(erp_object_id, '[^[:alnum:]]+') as part
        union all
        select ltrim(part, '0')
        from regexp_split_to_table(erp_object_id, '[^[:alnum:]]+') as part
      ) as keys (key)
      where key <> ''
    $$
  `)
  await knex.raw(`
    comment on function document_keys_of is
      'Returns what a document can be found by, in upper case: the docId, the id of the business object, the same without its company code (the first four characters), its parts between other characters than letters and digits, and each of them without leading zeros.';

    create table document_keys (
      workspace_id text collate "C" not null,
      key text collate "C" not null,
      document_id text collate "C" not null references documents (id) on delete cascade,
      primary key (workspace_id, key, document_id)
    );
    comment on table document_keys is 'What documents can be found by. Written by triggers on documents.';
    create index document_keys_of_document on document_keys (document_id);
    comment on index document_keys_of_document is 'Serves changes of a business object, and the deletion of documents.';

    create index deliveries_by_destination on deliveries (destination_id, status, document_id);
    comment on index deliveries_by_destination is 'Serves the search for documents by destination, connector or status of a delivery.';

    insert into document_keys (workspace_id, key, document_id)
    select workspace_id, key, id
    from documents, document_keys_of(doc_id, erp_object_id) as key;
  `)
  await knex.raw(`
    create function add_document_keys() returns trigger language plpgsql as $$
    begin
      insert into document_keys (workspace_id, key, document_id)
      select workspace_id, key, id
      from added, document_keys_of(doc_id, erp_object_id) as key;
      return null;
    end
    $$
  `)
  await knex.raw(`
    comment on function add_document_keys is 'Writes the keys of new documents.';
    create trigger add_document_keys
      after insert on documents
      referencing new table as added
      for each statement execute function add_document_keys();
  `)
  await knex.raw(`
    create function replace_document_keys() returns trigger language plpgsql as $$
    begin
      delete from document_keys where document_id = new.id;
      insert into document_keys (workspace_id, key, document_id)
      select new.workspace_id, key, new.id
      from document_keys_of(new.doc_id, new.erp_object_id) as key;
      return null;
    end
    $$
  `)
  await knex.raw(`
    comment on function replace_document_keys is 'Writes the keys of a document whose business object has changed.';
    create trigger replace_document_keys
      after update of erp_object_id on documents
      for each row
      when (old.erp_object_id is distinct from new.erp_object_id)
      execute function replace_document_keys();
  `)
}
