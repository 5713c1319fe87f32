export { setUpRelease as default } from './set-up.ts'
