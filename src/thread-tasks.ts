// What the threads of `threads.ts` can run. Every task is a pure function, so it can be called directly, too.
export { prepareCall, readAnswer } from './bridge/call.ts'
export { searchWindow } from './content/search-window.ts'
export { searchIndexWindow } from './content/search-index-window.ts'
