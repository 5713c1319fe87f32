// The bytes that a workspace stores, for its quota. A trigger counts them, because contents appear and disappear in many ways.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table workspace_storage (
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      shard smallint not null,
      bytes bigint not null,
      primary key (workspace_id, shard)
    );
    comment on table workspace_storage is
      'The bytes of the contents of a workspace, split over sixteen rows: documents that arrive at the same time do not wait for one row '
      'lock. A reader adds the rows up. One of them may be negative.';

    -- Nothing is counted for a workspace that is being deleted.
    create function count_stored_bytes() returns trigger language plpgsql as $$
    begin
      insert into workspace_storage (workspace_id, shard, bytes)
      select id, (txid_current() % 16)::smallint, coalesce(new.size_bytes, 0) - coalesce(old.size_bytes, 0)
      from workspaces
      where id = coalesce(new.workspace_id, old.workspace_id)
      on conflict (workspace_id, shard) do update
      set bytes = workspace_storage.bytes + excluded.bytes;
      return null;
    end
    $$;
    comment on function count_stored_bytes is
      'Keeps workspace_storage equal to the sum of contents.size_bytes. The row that it locks is the last lock of a transaction, which '
      'cannot deadlock: it runs at the commit, and the shard follows from the transaction.';

    create constraint trigger content_inserted
      after insert on contents
      deferrable initially deferred
      for each row when (new.size_bytes is not null)
      execute function count_stored_bytes();
    create constraint trigger content_measured
      after update of size_bytes on contents
      deferrable initially deferred
      for each row when (old.size_bytes is distinct from new.size_bytes)
      execute function count_stored_bytes();
    create constraint trigger content_removed
      after delete on contents
      deferrable initially deferred
      for each row when (old.size_bytes is not null)
      execute function count_stored_bytes();
    comment on trigger content_inserted on contents is 'A small content is inserted together with its document.';
    comment on trigger content_measured on contents is 'A large content gets its size when a document owns it.';
    comment on trigger content_removed on contents is 'The orphan sweep has removed a content.';

    insert into workspace_storage (workspace_id, shard, bytes)
    select workspace_id, 0, sum(size_bytes)
    from contents
    where size_bytes is not null
    group by workspace_id;
  `)
