// What operators look at every day. One relay and one browser serve all of it: to start them takes ten seconds of processor time.
import './screens/attention.ts'
import './screens/documents.ts'
import './screens/overview.ts'
