import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** Returns a transcript without what differs from run to run. */
const comparable = (transcript: string, dataDir: string): string[] =>
  transcript
    .replaceAll(dataDir, 'DIR')
    .replaceAll(/\b(\d+\.\d+\.\d+\.\d+):\d+/g, '$1:PORT')
    .replaceAll(/run-\d+/g, 'run-N')
    .replaceAll(/relay_[\w-]+|relay_\.\.\./g, 'KEY')
    .replaceAll(/sign-in=\S+/g, 'sign-in=LINK')
    .replaceAll(/\b[0-9A-Za-z]{26,64}\b|%2F[0-9A-Za-z]{26}\b/g, 'ID')
    .replaceAll(/PostgreSQL \d+/g, 'PostgreSQL N')
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')

describe('the demo', () => {
  test('delivers a PDF byte for byte to an SFTP server and a webhook, as the README shows, and exits with 0', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'relay-demo-'))
    try {
      const demo = spawn(process.execPath, [fileURLToPath(new URL('../../../src/main.ts', import.meta.url)), 'demo', '--once'], {
        env: { ...process.env, RELAY_DATA_DIR: dataDir, RELAY_PORT: '0', RELAY_TEMPORAL_BIN: process.env.TEST_TEMPORAL_BIN },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const exited = once(demo, 'exit') as Promise<[number | null]>
      const [output, errors] = await Promise.all([text(demo.stdout), text(demo.stderr)])
      expect({ status: (await exited)[0], errors }).toEqual({ status: 0, errors: expect.not.stringMatching(/warning|error/i) })
      const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8')
      const story = output.slice(output.indexOf('1. Created workspace'))
      expect(comparable(story, dataDir)).toEqual(comparable(/```\n(1\. Created workspace [^`]*)```/.exec(readme)![1]!, '.demo'))
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  })
})
