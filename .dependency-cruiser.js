import { builtinModules } from 'node:module'
import { floors } from './script/floors.ts'

// A folder, or a file that lies in no folder
const placeOf = (room) => (room.endsWith('.ts') ? room.replace('.', '\\.') : `${room}/`)

const floorRules = floors.slice(1).flatMap((rooms, index) =>
  rooms.map((room) => ({
    name: `${room}-imports-from-below-only`,
    severity: 'error',
    from: { path: `^src/${placeOf(room)}` },
    to: {
      path: `^src/(${floors
        .slice(0, index + 2)
        .flat()
        .filter((other) => other !== room)
        .map(placeOf)
        .join('|')})`,
    },
  })),
)

// As the resolver names them.
const nodeModules = `^(node:)?(${builtinModules.join('|')})$`

export default {
  forbidden: [
    ...floorRules,
    {
      name: 'every-file-has-a-floor',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: `^src/(${floors.flat().map(placeOf).join('|')})` },
    },
    {
      name: 'cli-does-not-import-the-api',
      comment: 'The management API and the command line call the same use cases. The API describes itself (relay openapi).',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/api/(?!open-api/document\\.ts$)' },
    },
    {
      name: 'verbs-load-their-modules-when-they-run',
      comment: 'Loading all of the relay takes a CPU second.',
      severity: 'error',
      from: { path: '^(src/(main|cli/[^/]+-verbs|cli/(cli|context|output|stop-signal))|clients/check-source/src/check-options)\\.ts$' },
      to: {
        pathNot:
          '^(src/cli/(cli|context|output|stop-signal|[^/]+-verbs|apply/change)|src/base/(count-of|errors|text|version)|src/domain/bounds|src/security/levels|clients/check-source/src/(check|check-options))\\.ts$|/commander/|^(node:)?util$',
        dependencyTypesNot: ['dynamic-import', 'type-only'],
      },
    },
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    {
      name: 'workflows-stay-in-the-sandbox',
      comment: 'A Node module that a workflow reaches breaks its determinism.',
      severity: 'error',
      from: { path: '^workflows/' },
      to: { reachable: true, path: nodeModules },
    },
    {
      name: 'workflows-import-domain-only',
      comment: 'And the module that makes texts of others plain, which imports nothing.',
      severity: 'error',
      from: { path: '^workflows/' },
      to: { path: '^(src/(?!(domain/|base/text\\.ts))|activities/)' },
    },
    {
      name: 'domain-is-pure',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { path: '^(src/(?!(base|domain)/)|workflows/|activities/)' },
    },
    { name: 'domain-has-no-io', severity: 'error', from: { path: '^src/domain/' }, to: { reachable: true, path: nodeModules } },
    {
      name: 'surfaces-start-no-workflows',
      comment: 'A surface writes to the outbox. The launcher starts workflows.',
      severity: 'error',
      from: { path: '^src/(api|receiver|bridge|rfc|observe|notifications|events|access|routing|workspace|archive)/' },
      to: { path: '^(workflows/(?!(ids|messages)\\.ts$)|activities/)' },
    },
    {
      name: 'only-delivery-changes-a-status',
      severity: 'error',
      from: { pathNot: '^(src/delivery/|activities/delivery\\.ts$|src/app/)' },
      to: { path: '^src/delivery/(transition|record-attempt)\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'connectors-do-not-import-each-other',
      severity: 'error',
      from: { path: '^src/connectors/([^/]+)/' },
      to: { path: '^src/connectors/[^/]+/', pathNot: '^src/connectors/($1|shared)/' },
    },
    {
      name: 'activities-are-thin',
      severity: 'error',
      from: { path: '^activities/' },
      to: { path: '^src/(?!(base|config|db|delivery|enrichment|events|maintenance|migration|notifications)/)' },
    },
    {
      name: 'composition-is-at-the-top',
      severity: 'error',
      from: { path: '^(src/[^/]+|activities|workflows)/', pathNot: '^src/(cli|dev|app)/' },
      to: { path: '^src/(main\\.ts$|(cli|dev|app)/)' },
    },
    {
      name: 'console-uses-the-public-api-only',
      comment: 'A browser runs the console. It shares a few modules, which import nothing but each other, and the types of the API.',
      severity: 'error',
      from: { path: '^console/' },
      to: {
        path: '^(src/(?!(connectors/error-codes|domain/(bounds|business-object|business-object-types|delivery-states|query-marks|refusal-codes|retry))\\.ts$)|workflows/(?!ids\\.ts$)|activities/)',
      },
    },
    {
      name: 'check-of-content-servers-needs-no-relay',
      comment: 'It is a package of its own. The relay compiles it in, and tests its own repositories with it.',
      severity: 'error',
      from: { path: '^clients/check-source/' },
      to: { path: '^src/(?!(base|content-server|security)/|cli/(output|stop-signal)\\.ts$)' },
    },
    { name: 'console-runs-in-a-browser', severity: 'error', from: { path: '^console/' }, to: { reachable: true, path: nodeModules } },
    {
      name: 'nothing-imports-the-console',
      severity: 'error',
      from: { path: '^(src|workflows|activities)/' },
      to: { path: '^console/' },
    },
    { name: 'nothing-needs-tests', severity: 'error', from: { pathNot: '^(test|bench|faults)/' }, to: { path: '^(test|bench|faults)/' } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        pathNot: '^(src/temporal/bundle\\.ts$|src/api/docs/search\\.js$|src/(main|health)\\.ts$|workflows/index\\.ts$)',
      },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: 'specify',
    parser: 'swc',
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
}
