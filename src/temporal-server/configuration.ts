import { datastore, type Store } from './store.ts'

export const services = ['frontend', 'history', 'matching', 'worker'] as const
type Service = (typeof services)[number]
export type ServicePorts = Record<Service, { grpcPort: number; membershipPort: number }>

const loopback = '127.0.0.1'
// The first start fixes the number for good. Four suffice for what one machine delivers, and cost less idle than 512.
const historyShards = 4
// Each service has pools of its own: at most 4 x (10 + 3) connections; 21 were measured.
const connections = { state: 10, visibility: 3 }

/** Returns the configuration of a server of all four services that only this machine reaches. The server reads YAML, which includes JSON. */
export const serverConfiguration = (store: Store, ports: ServicePorts, dynamicConfigPath: string) => {
  const address = `${loopback}:${ports.frontend.grpcPort}`
  return {
    log: { stdout: true, level: 'error', format: 'json' },
    persistence: {
      numHistoryShards: historyShards,
      defaultStore: 'state',
      visibilityStore: 'visibility',
      datastores: {
        state: datastore(store, 'temporal', connections.state),
        visibility: datastore(store, 'temporal_visibility', connections.visibility),
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: loopback } },
    services: Object.fromEntries(services.map((name) => [name, { rpc: { ...ports[name], bindOnIP: loopback } }])),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: { active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: address } },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    publicClient: { hostPort: address },
    dynamicConfigClient: { filepath: dynamicConfigPath, pollInterval: '60s' },
  }
}
