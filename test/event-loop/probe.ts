// Loaded into a relay process before its own code (`node --import`). On request, measures how much processor time the main thread spends in
// one turn of its event loop.
//
// A turn is the time between two immediates, so it contains all callbacks of one turn: no single callback can be longer. Processor time of
// the thread, and not the clock, because a busy machine suspends the thread for as long as it likes.
const microseconds = () => {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

let isMeasuring = false
let longest = 0
let last = 0

const measureTurn = () => {
  const now = microseconds()
  longest = Math.max(longest, now - last)
  last = now
  if (isMeasuring) setImmediate(measureTurn)
}

process.on('message', (message) => {
  if (message === 'start') {
    isMeasuring = true
    longest = 0
    last = microseconds()
    setImmediate(measureTurn)
  } else {
    isMeasuring = false
    process.send!({ longestTurnMs: longest / 1_000 })
  }
})
