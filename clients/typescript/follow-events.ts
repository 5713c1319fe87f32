import { createClient, unwrap } from './src/index.ts'

const { RELAY_URL = 'http://127.0.0.1:8080', RELAY_WORKSPACE = 'acme/invoices', RELAY_API_KEY = '' } = process.env
const relay = createClient({ baseUrl: RELAY_URL, workspace: RELAY_WORKSPACE, apiKey: RELAY_API_KEY })

// Store the cursor with what you have processed, and begin with it after a restart.
let after = 'latest'
for (;;) {
  const { data, meta } = await unwrap(relay.GET('/events', { params: { query: { after, wait_seconds: 30 } } }))
  for (const { attributes } of data) console.log(attributes.created_at, attributes.event, attributes.data['doc_id'])
  after = meta.next_cursor
}
