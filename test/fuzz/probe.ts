// Loaded into a relay process before its own code (`node --import`). On request, collects garbage and reports what the process still holds.
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const measure = async () => {
  // Finalizers free more, which the next collection finds.
  for (let round = 0; round < 4; round += 1) {
    collect()
    await delay(50)
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  process.send!({ heapUsed, external, rss, sockets })
}

process.on('message', () => void measure())
