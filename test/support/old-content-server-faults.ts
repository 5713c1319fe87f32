/**
 * Ways in which a content server can be broken. Each changes one thing; a server may have several, and gets and loses them while it runs.
 */
export const serverFaults = {
  accepts_any_signature: 'a signature is not verified',
  accepts_expired: 'the expiration of a signed URL is ignored',
  accepts_garbage_certificate: 'putCert answers 200 to a body that is not a certificate',
  accepts_unsigned: 'a request without a signature is served',
  activates_certificates: 'putCert activates the certificate',
  append_replaces: 'append replaces the component',
  closes_midway: 'get and docGet close the connection after half of the content',
  create_adds: 'create adds a component to an existing document',
  create_overwrites: 'create replaces an existing document',
  damages_byte: 'get and docGet change the byte in the middle',
  exists_is_404: 'create of an existing document answers 404',
  fails: 'every command answers 500',
  half_created: 'create by POST keeps the parts before a malformed one',
  ignores_access_mode: 'a URL that is signed for reading may delete',
  ignores_range: 'get ignores fromOffset and toOffset',
  info_size: 'info tells one byte too many',
  keeps_deleted: 'delete answers 200 and deletes nothing',
  loses_charset: 'the parameters of a Content-Type are dropped',
  loses_component: 'docGet leaves the last component out',
  never_answers: 'no command is answered',
  no_error_description: 'errors have no X-ErrorDescription',
  plus_is_space: 'a plus sign in a value is read as a space',
  range_excludes_end: 'get excludes the byte at toOffset',
  range_is_206: 'get of a range answers 206',
  search_offset: 'search counts offsets from 1',
  slow: 'every answer waits for slowMs',
  stops_midway: 'get and docGet stop after half of the content and keep the connection open',
  swaps_dates: 'the dates of creation and modification are swapped',
  truncates: 'content beyond 64 KiB is not stored',
  unknown_is_200: 'a read of an unknown document answers 200 with an empty body',
  update_drops_others: 'update by PUT deletes the other components',
  wrong_part_length: 'docGet tells a Content-Length of parts that is one too large',
} as const

export type ServerFault = keyof typeof serverFaults
