import type { Target } from '../../../src/connectors/connector.ts'
import { contentServer } from '../../../src/connectors/content-server/index.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { createThrowAwayKey } from '../../../src/security/throw-away-key.ts'
import { startBusyServer } from '../../support/busy-server.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { startOldContentServer } from '../../support/old-content-server.ts'
import { startPages } from '../../support/pages.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import type { Rig, RunningTarget, Step } from '../rig.ts'

const authId = 'CN=RELAY'
const sample = await createThrowAwayKey('rsa', 'RELAY', 1)

const credentialsOf = ({ certificate, privateKey }: typeof sample) => ({ auth_id: authId, certificate, private_key: privateKey })

/** Starts the independent content server, which serves signed requests only, with the key of its only certificate. */
const startSigned = async () => {
  const [server, key, stranger] = await Promise.all([
    // A large document is not kept: it would count as memory of the connector.
    startOldContentServer({ isSigned: true, keptMaxBytes: 8 * 1024 * 1024 }),
    createThrowAwayKey('rsa', 'RELAY', 1),
    createThrowAwayKey('rsa', 'RELAY', 1),
  ])
  server.trust(key.certificate, authId)
  return { server, credentials: credentialsOf(key), strange: credentialsOf(stranger) }
}

// A server may permit each document once: that its other components are refused must not fail the test.
export const steps: Record<string, Step> = {
  info: { operation: /^info of \S+ in the repository Z1 at http\S+: / },
  create: { operation: /^create of \S+\/data in the repository Z1 at http\S+: / },
}

/** Puts a proxy before a content server that refuses a command. */
export const refuseCommand = async (port: number, command: string, target: (port: number) => Target<unknown, unknown>) => {
  const store = await startRefusingStore(port, (_request, { searchParams }) => (searchParams.has(command) ? { status: 422 } : undefined))
  return { target: target(store.port), stop: store.stop }
}

export const rig: Rig = {
  kind: 'content-server',
  against: 'an independent server',
  usesNetwork: true,
  demandsEvidence: true,
  connectorIn: () => contentServer,

  start: async (): Promise<RunningTarget> => {
    const { server, credentials, strange } = await startSigned()
    const target = (port = server.port, config: object = {}, other: object = {}) => ({
      config: contentServer.config.parse({ url: server.url.replace(`:${server.port}/`, `:${port}/`), repository: 'Z1', ...config }),
      credentials: contentServer.credentials.parse({ ...credentials, ...other }),
    })
    const all = () =>
      [...server.documents].flatMap(([key, { components }]) => components.map((one) => ({ ...one, key: `${key}/${one.compId}` })))
    return {
      connector: contentServer,
      target,
      network: {
        port: server.port,
        pages: (status, which) => startPages(server.port, status, which),
        wrongCredentials: target(server.port, {}, strange),
        secrets: [credentials.private_key, strange.private_key, strange.private_key.split('\n')[1] ?? ''],
        busy: (load, retryAfter) => startBusyServer(load, { 'retry-after': retryAfter }, 'later'),
      },
      refusing: { steps, start: async (step) => refuseCommand(server.port, step, target) },
      missingLocation: { target: target(server.port, { repository: 'NONE' }), code: 'repository_missing' },
      keepsContentType: true,
      read: async ({ docId, compId }) => all().find(({ key }) => key === `Z1/${docId}/${compId}`),
      readByNames: async ({ doc_id: docId }) => all().find(({ key }) => key.startsWith(`Z1/${docId}/`)),
      documents: async () => all().map(({ key }) => key),
      leftovers: async () => [],
      reset: async () => server.documents.clear(),
      stop: server.stop,
    }
  },

  hostSettings: [
    {
      name: 'the url of content-server',
      destination: (host, port) => ({
        connector: contentServer,
        config: { url: `http://${host}:${port}/archive`, repository: 'Z1' },
        credentials: {},
      }),
    },
  ],
  addressField: { key: 'url', form: 'url', config: { repository: 'Z1' }, connector: contentServer },
  tlsCases: [
    {
      name: 'content-server',
      destination: (port) => ({
        connector: contentServer,
        config: { url: `https://127.0.0.1:${port}/archive`, repository: 'Z1' },
        credentials: {},
      }),
      listen: startHttpTarget,
      isHttp: true,
    },
  ],

  startProbeTarget: async () => {
    const { server, credentials, strange } = await startSigned()
    const web = await startHttpTarget()
    return {
      connector: contentServer,
      config: { url: server.url, repository: 'Z1' },
      credentials,
      mistakes: [
        ['another key', {}, strange, /401: signature invalid.*activate the certificate/],
        ['another name of the certificate', {}, { auth_id: 'CN=OTHER' }, /401: no active certificate.*auth_id/],
        ['no signature', {}, { auth_id: undefined, certificate: undefined, private_key: undefined }, /401.*save auth_id, certificate/],
        ['another repository', { repository: 'Z2' }, {}, /404.*does not know the repository Z2/],
        ['a web server', { url: `${web.origin}/archive` }, {}, /check that url is the address of a content server/],
        ['https at an http server', { url: server.url.replace('http:', 'https:') }, {}, /TLS/],
        ['another port', { url: `http://127.0.0.1:${await findFreePort()}/` }, {}, /nothing listens/],
      ],
      stop: async () => {
        await web.stop()
        await server.stop()
      },
    }
  },

  secretSamples: [[credentialsOf(sample), [sample.privateKey]]],
}
