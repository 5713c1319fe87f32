import { time, ulid, type Json, type Row } from './world.ts'

// Section 4.4 of the specification: endpoints of connections.

export const connectionRows: Row[] = [
  [
    '4.4 GET /connections filters by is_active',
    async ({ acme, specimen }) => {
      const { connectionId } = await acme.wire(['accepting'], { is_active: false })
      const active = await acme.idsOf('/connections?is_active=true')
      const inactive = await acme.idsOf('/connections?is_active=false')
      expect(active).toContain(specimen.connectionId)
      expect(inactive).toContain(connectionId)
      expect(active.filter((id) => inactive.includes(id))).toEqual([])
      expect((await acme.idsOf('/connections')).toSorted()).toEqual([...active, ...inactive].toSorted())
      expect(await acme.statusOf('GET', '/connections?is_active=yes')).toBe(400)
    },
  ],
  [
    '4.4 GET /connections is { data: [...] }, without meta',
    async ({ acme, tenant }) => {
      expect(Object.keys((await acme.call('GET', '/connections')).json)).toEqual(['data'])
      expect((await (await tenant('acme/empty')).call('GET', '/connections')).json).toEqual({ data: [] })
    },
  ],
  [
    '4.4 GET /connections/:id has linked repositories and destinations',
    async ({ acme, specimen }) => {
      const { json } = await acme.call('GET', `/connections/${specimen.connectionId}`)
      expect(json.data).toMatchObject({
        repositories: [{ id: specimen.repositoryId, repo_id: specimen.repoId, description: `Repository ${specimen.repoId}` }],
        destinations: [{ id: specimen.destinationId, type: 'webhook', name: 'To accepting' }],
      })
    },
  ],
  [
    '4.4 POST /connections requires name, repository_ids and destination_ids',
    async ({ acme, specimen }) => {
      const whole = { name: 'A', repository_ids: [specimen.repositoryId], destination_ids: [specimen.destinationId] }
      for (const missing of Object.keys(whole)) {
        const body = Object.fromEntries(Object.entries(whole).filter(([name]) => name !== missing))
        expect(await acme.statusOf('POST', '/connections', body)).toBe(400)
      }
    },
  ],
  [
    '4.4 POST /connections answers 201 with the connection, flat; is_active defaults to true, settings are optional',
    async ({ acme, specimen }) => {
      const links = { repository_ids: [specimen.repositoryId], destination_ids: [await acme.destination()] }
      const plain = await acme.call('POST', '/connections', { name: 'A', ...links })
      expect(plain).toMatchObject({ status: 201, json: { data: { id: ulid, is_active: true, settings: {} } } })
      const settings = { on_resume: 'skip' }
      const other = await acme.call('POST', '/connections', { name: 'A', is_active: false, settings, ...links })
      expect(other).toMatchObject({ status: 201, json: { data: { is_active: false, settings } } })
      for (const { json } of [plain, other]) expect(await acme.statusOf('DELETE', `/connections/${json.data.id}`)).toBe(200)
    },
  ],
  [
    '4.4 PATCH replaces whole sets of ids and does not change omitted fields',
    async ({ acme }) => {
      const { connectionId, destinations: before, repositoryId } = await acme.wire(['accepting', 'accepting'])
      const added = await acme.destination()
      const { status, json } = await acme.call('PATCH', `/connections/${connectionId}`, { destination_ids: [added] })
      expect({ status, ids: json.data.destinations.map(({ id }: Json) => id) }).toEqual({ status: 200, ids: [added] })
      expect(before).not.toContain(added)
      expect(json.data).toMatchObject({ name: 'A', is_active: true, repositories: [{ id: repositoryId }] })
      const { id: second } = await acme.repository()
      const moved = await acme.call('PATCH', `/connections/${connectionId}`, { repository_ids: [second], name: 'B' })
      expect(moved.json.data).toMatchObject({ name: 'B', repositories: [{ id: second }], destinations: [{ id: added }] })
    },
  ],
  [
    '4.4 PATCH accepts settings as in create',
    async ({ acme }) => {
      const { connectionId } = await acme.wire(['accepting'])
      const settings = { path_template: '{yyyy}/{doc_id}/{comp_id}' }
      const { json } = await acme.call('PATCH', `/connections/${connectionId}`, { settings })
      expect(json.data.settings).toEqual(settings)
    },
  ],
  [
    '4.4 DELETE answers 200 with a message',
    async ({ acme }) => {
      const { connectionId } = await acme.wire(['accepting'])
      const { status, json } = await acme.call('DELETE', `/connections/${connectionId}`)
      expect({ status, json }).toEqual({ status: 200, json: { message: expect.stringMatching(/\S/) } })
      expect(await acme.statusOf('GET', `/connections/${connectionId}`)).toBe(404)
    },
  ],
  [
    '4.4 a PATCH of only is_active switches a pipeline off and on',
    async ({ acme }) => {
      const { connectionId, repositoryId } = await acme.wire(['accepting'])
      const { data: before } = (await acme.call('GET', `/connections/${connectionId}`)).json
      for (const isActive of [false, true]) {
        const { status, json } = await acme.call('PATCH', `/connections/${connectionId}`, { is_active: isActive })
        expect({ status, data: json.data }).toEqual({ status: 200, data: { ...before, is_active: isActive, updated_at: time } })
        expect(await acme.attributesOf(`/repositories/${repositoryId}`)).toMatchObject({
          certificates: [],
          connections: [{ id: connectionId, destination_name: 'To accepting', status: isActive ? 'active' : 'inactive' }],
        })
      }
    },
  ],
  [
    '4.4 a connection keeps the order of its repositories and destinations, each of them once',
    async ({ acme }) => {
      const [one, two] = [await acme.repository(), await acme.repository()]
      const [x, y] = [await acme.destination('accepting', 'X'), await acme.destination('accepting', 'Y')]
      const body = { name: 'Fan', repository_ids: [two.id, one.id, two.id], destination_ids: [y, x], settings: { on_resume: 'skip' } }
      const { status, json } = await acme.call('POST', '/connections', body)
      expect({ status, json }).toEqual({
        status: 201,
        json: {
          data: {
            id: ulid,
            name: 'Fan',
            is_active: true,
            repositories: [two, one].map(({ id, repoId }) => ({ id, repo_id: repoId, description: `Repository ${repoId}` })),
            destinations: [
              { id: y, type: 'webhook', name: 'Y' },
              { id: x, type: 'webhook', name: 'X' },
            ],
            settings: { on_resume: 'skip' },
            held_deliveries: 0,
            created_at: time,
            updated_at: time,
          },
        },
      })
      expect((await acme.call('GET', `/connections/${json.data.id}`)).json).toEqual(json)
    },
  ],
  [
    '4.4 one connection may list several repositories and several destinations',
    async ({ acme, arrivalsOf }) => {
      const [one, two] = [await acme.repository(), await acme.repository()]
      const ids = [await acme.destination('accepting', 'First'), await acme.destination('accepting', 'Second')]
      await acme.connect([one.id, two.id], ids)
      for (const { repoId } of [one, two]) {
        await acme.sendDocument(repoId, 'delivered')
        expect(arrivalsOf(repoId)).toHaveLength(2)
      }
    },
  ],
]
