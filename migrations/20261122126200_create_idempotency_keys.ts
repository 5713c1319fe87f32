// A client that repeats a POST because it saw no answer must not create a second resource. The key that it sends with the request is stored
// with the answer. An answer can contain a secret, such as a new API key, so it is sealed; so is the digest of the request, because a digest
// of a body with a short password would allow guessing the password.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table idempotency_keys (
      api_key_id text collate "C" not null references api_keys (id) on delete cascade,
      -- as the client sent it in Idempotency-Key
      key text collate "C" not null,
      -- the id of the execution that may store the answer
      execution_id text collate "C" not null,
      -- the digest of the request, sealed
      request_sealed bytea not null,
      -- status, headers and body, sealed; null while the request is executed
      answer_sealed bytea,
      -- an execution without an answer is considered lost after this time
      locked_until timestamptz not null,
      expires_at timestamptz not null,
      primary key (api_key_id, key)
    );
    comment on table idempotency_keys is 'A POST with an Idempotency-Key, and its answer.';
    create index idempotency_keys_by_expiry on idempotency_keys (expires_at);
    comment on index idempotency_keys_by_expiry is 'Serves the removal of expired keys.';
  `)
