import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { opaqueBytes } from '../support/source-system.ts'
import { inTurns, startHomeScene } from './scene.ts'

const count = Number(process.env['TEST_HOME_DOCUMENTS'] ?? 10_000)
const root = share(await createFolder())
const scene = share(await startHomeScene([root.path]))

test('of ten thousand documents whose contents are all at their home, every get, info and range is right', async () => {
  const path = join(root.path, 'home')
  await mkdir(path)
  const home = await scene.workspace({ connector: 'directory', config: { path } })
  await home.setHome()
  const docIds = Array.from({ length: count }, (_, index) => `D${index}`)
  // What the documents contain follows from a few blocks, so that they need no memory here.
  const blocks = Array.from({ length: 16 }, (_, index) => opaqueBytes(1_000 + index * 997))
  const bytesOf = (docId: string) => blocks[Number(docId.slice(1)) % blocks.length]!
  await inTurns(docIds, (docId) => home.source.create(docId, bytesOf(docId)))
  await home.deliver()

  const began = performance.now()
  await home.move()
  const seconds = (performance.now() - began) / 1_000
  process.stderr.write(`${count} contents left for their home in ${seconds.toFixed(1)} s\n`)
  expect([await home.movedCount(), await home.bytesHere()]).toEqual([count, 0])

  const wrong: string[] = []
  await inTurns(docIds, async (docId) => {
    const bytes = bytesOf(docId)
    const [whole, part, info] = [
      await home.source.get(docId),
      await home.source.get(docId, '&fromOffset=10&toOffset=99'),
      await home.source.info(docId),
    ]
    const isRight =
      whole.body.equals(bytes) && part.body.equals(bytes.subarray(10, 100)) && info.body.includes(`X-Content-Length: ${bytes.length}`)
    if (!isRight) wrong.push(docId)
  })
  expect(wrong).toEqual([])
}, 3_600_000)
