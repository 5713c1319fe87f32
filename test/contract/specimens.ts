import { type Json, type World } from './world.ts'

// Functions that fetch the specimens of a world.

export const itemAt =
  (path: (world: World) => string) =>
  async (world: World): Promise<Json> =>
    (await world.acme.call('GET', path(world))).json
export const firstOf = (path: string) => async (world: World) => (await itemAt(() => path)(world)).data[0]
export const attributesAt = (path: (world: World) => string) => (world: World) => world.acme.attributesOf(path(world))

export const single = {
  destination: ({ specimen }: World) => `/destinations/${specimen.destinationId}`,
  repository: ({ specimen }: World) => `/repositories/${specimen.repositoryId}`,
  connection: ({ specimen }: World) => `/connections/${specimen.connectionId}`,
  document: ({ specimen }: World) => `/documents/${specimen.documentId}`,
  request: ({ specimen }: World) => `/requests/${specimen.requestId}`,
}
export const listed = {
  destination: async ({ acme, specimen }: World) => {
    const { json } = await acme.call('GET', '/destinations?per_page=100')
    return json.data.find(({ id }: Json) => id === specimen.destinationId).attributes
  },
  repository: async ({ acme, specimen }: World) => {
    const { json } = await acme.call('GET', '/repositories?per_page=100')
    return json.data.find(({ id }: Json) => id === specimen.repositoryId).attributes
  },
  document: async ({ acme, specimen }: World) => {
    const { json } = await acme.call('GET', `/documents?repo_id=${specimen.repoId}`)
    return json.data.find(({ id }: Json) => id === specimen.documentId).attributes
  },
  request: async ({ acme, specimen }: World) => {
    const { json } = await acme.call('GET', `/requests?doc_id=CAPTURED&repo_id=${specimen.repoId}`)
    return json.data[0].attributes
  },
}
