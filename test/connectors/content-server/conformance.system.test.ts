import { describeConnector } from '../conformance.ts'
import { rig } from './rig.ts'

describeConnector(rig)
