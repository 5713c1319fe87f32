import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../src/programs/ports.ts'
import { startServer } from './server-program.ts'

test('a server that exits instead of listening is reported at once, with the end of its output', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-server-'))
  const options = { name: 'The server', port: await findFreePort(), logFile: join(folder, 'server.log') }
  try {
    const starting = startServer('/bin/sh', ['-c', 'echo a broken setting >&2; exit 3'], options)
    await expect(starting).rejects.toThrow(/^The server exited during start\..*: a broken setting$/)
  } finally {
    await rm(folder, { recursive: true })
  }
})
