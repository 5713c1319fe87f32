import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

describe('the demo', () => {
  test('delivers a PDF byte for byte to an SFTP server and a webhook, and exits with 0', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'relay-demo-'))
    try {
      const demo = spawn(process.execPath, [fileURLToPath(new URL('../../../src/main.ts', import.meta.url)), 'demo', '--once'], {
        env: { ...process.env, RELAY_DATA_DIR: dataDir, RELAY_PORT: '0', RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const exited = once(demo, 'exit') as Promise<[number | null]>
      const output = await text(demo.stdout)
      expect(output).toContain('Both destinations received it byte for byte')
      expect(output).toContain('Archive: delivered after 1 attempt')
      expect(output).toContain('Workflow: delivered after 1 attempt')
      expect((await exited)[0]).toBe(0)
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  })
})
