import { createClient, pages, RelayError, unwrap, type Document } from './src/index.ts'

const { RELAY_URL = 'http://127.0.0.1:8080', RELAY_WORKSPACE = 'acme/invoices', RELAY_API_KEY = '' } = process.env
const relay = createClient({ baseUrl: RELAY_URL, workspace: RELAY_WORKSPACE, apiKey: RELAY_API_KEY })

const destination = await unwrap(
  relay.POST('/destinations', {
    body: {
      name: 'Inbox',
      connector_type: 'webhook',
      config: { url: 'https://target.example/documents' },
      credentials: { bearer_token: 'your-token' },
    },
  }),
)
const repository = await unwrap(relay.POST('/repositories', { body: { repo_id: 'Z1', name: 'Invoices' } }))
await unwrap(
  relay.POST('/connections', {
    body: { name: 'All invoices', repository_ids: [repository.data.id], destination_ids: [destination.data.id] },
  }),
)

const failed: Document[] = []
for await (const { data } of pages(relay, '/documents', { query: { status: 'failed', per_page: 100 } })) failed.push(...data)
console.log(`${failed.length} failed documents`)

try {
  await unwrap(relay.GET('/repositories/{id}', { params: { path: { id: 'no-such-id' } } }))
} catch (thrown) {
  if (!(thrown instanceof RelayError)) throw thrown
  console.log(thrown.status, thrown.code, thrown.message)
}
