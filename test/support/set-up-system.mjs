export { setUpSystem as default } from './set-up.ts'
