export { default } from './tear-down.ts'
