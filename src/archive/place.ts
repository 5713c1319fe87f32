/**
 * SQL: what a document that is delivered later has in common with the one that it replaces: the path, and at a content server, on which the path
 * has no effect, the ids.
 */
export const placeOf = ({ kind, path, docId, compId }: Record<'kind' | 'path' | 'docId' | 'compId', string>) =>
  `case when ${kind} = 'content-server' then ${docId} || '/' || ${compId} else ${path} end`
