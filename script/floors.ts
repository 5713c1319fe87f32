/**
 * Rooms of `src` from top to bottom. A room imports from rooms below it only: never from a room above, nor from another room on its floor.
 * A name that ends with `.ts` is a file that lies in no folder.
 */
export const floors: readonly (readonly string[])[] = [
  ['main.ts'],
  ['cli'],
  ['dev'],
  ['app'],
  ['api', 'maintenance'],
  ['notifications', 'observe', 'proof'],
  ['enrichment', 'bridge'],
  ['rfc', 'receiver', 'check-source', 'temporal-server'],
  ['routing', 'events', 'temporal'],
  ['delivery', 'migration', 'home'],
  ['archive', 'access'],
  ['capture', 'workspace'],
  ['http', 'content'],
  ['db'],
  ['connectors'],
  ['content-server', 'programs'],
  ['security', 'config', 'domain'],
  ['base', 'health.ts'],
]
