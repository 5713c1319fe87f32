export { setUpDb as default } from './set-up.ts'
