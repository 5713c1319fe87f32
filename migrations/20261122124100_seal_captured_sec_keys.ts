// A secKey gives access to a document until its URL expires, and everybody who reads captured requests could see it. It is redacted in the
// query string now. A replay needs it, so it is kept sealed. Requests that were captured before lose it: a migration has no key to seal it
// with, and these requests can no longer be replayed.
import type { Knex } from 'knex'

// The letters of a name may be percent-encoded.
const name = Array.from('seckey', (letter) => {
  const [lower, upper] = [letter, letter.toUpperCase()].map((character) => `%${character.charCodeAt(0).toString(16)}`)
  return `(?:${letter}|${lower}|${upper})`
}).join('')

export const up = (knex: Knex) =>
  knex
    .raw(
      `
      alter table captured_requests add column query_sealed bytea;
      comment on column captured_requests.query_sealed is
        'The query string with its secKey, sealed for a replay. Null if it has none. In query_string, the secKey is redacted.';
      `,
    )
    .then(() =>
      knex.raw(
        `
        update captured_requests
        set query_string = regexp_replace(query_string, :parameter, '\\1[REDACTED]', 'gi')
        where query_string ~* :parameter
        `,
        { parameter: `((?:^|&)${name}=)[^&]*` },
      ),
    )
