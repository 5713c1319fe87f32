export { default } from './conformance-matrix.ts'
