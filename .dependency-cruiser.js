import { builtinModules } from 'node:module'

// The arrows of the house: main -> cli -> compose -> (http | receiver | temporal -> activities) -> db | content | connectors |
// security -> domain. Each rule names an arrow that must not be there.
const rooms = '^src/(http|receiver|bridge|capture|embedded|demo|commands)/'
// as the resolver names them
const nodeModules = `^(node:)?(${builtinModules.join('|')})$`
const hands = '^src/(db|content|connectors|security)/'

export default {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    {
      name: 'workflows-stay-in-the-sandbox',
      comment: 'a Node module anywhere below a workflow breaks its determinism',
      severity: 'error',
      from: { path: '^workflows/' },
      to: { reachable: true, path: nodeModules },
    },
    {
      name: 'domain-is-pure',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { path: '^(src/(?!domain/)|workflows/|activities/)' },
    },
    { name: 'domain-knows-no-node', severity: 'error', from: { path: '^src/domain/' }, to: { reachable: true, path: nodeModules } },
    { name: 'workflows-know-domain-and-types-only', severity: 'error', from: { path: '^workflows/' }, to: { path: '^src/(?!domain/)' } },
    {
      name: 'hands-know-no-room',
      comment: 'stores and connectors are used by the surfaces, never the other way round',
      severity: 'error',
      from: { path: hands },
      to: { path: rooms },
    },
    {
      name: 'rooms-are-apart',
      severity: 'error',
      from: { path: '^src/(http|receiver|bridge)/' },
      // what both JSON surfaces read bodies and answer refusals with
      to: { path: '^src/(http|receiver|bridge)/', pathNot: '^src/($1/|http/(body|errors|faults)\\.ts$)' },
    },
    {
      name: 'capture-knows-no-channel',
      comment: 'receiver and bridge tell it what there was; it asks nobody',
      severity: 'error',
      from: { path: '^src/capture/' },
      to: { path: '^src/(http|receiver|bridge|temporal)/' },
    },
    {
      name: 'temporal-through-its-client-only',
      severity: 'error',
      from: { path: '^src/(http|receiver|bridge)/' },
      to: { path: '^(src/temporal/(?!(client|launcher)\\.ts)|workflows/(?!messages)|activities/)' },
    },
    {
      name: 'activities-are-thin',
      severity: 'error',
      from: { path: '^activities/' },
      to: { path: '^src/(http|receiver|bridge|embedded|temporal|demo|cli|main|compose)' },
    },
    {
      name: 'composition-is-at-the-top',
      severity: 'error',
      from: { path: '^src/[^/]+/', pathNot: '^src/demo/' },
      to: { path: '^src/(main|cli|compose)\\.ts$' },
    },
    { name: 'nothing-needs-tests', severity: 'error', from: { pathNot: '^(test|bench)/' }, to: { path: '^(test|bench)/' } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, pathNot: '^(migrations/|src/temporal/bundle\\.ts$|src/main\\.ts$|workflows/index\\.ts$)' },
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
