// What administrators set up. One relay and one browser serve all of it: to start them takes ten seconds of processor time.
import './screens/connections.ts'
import './screens/destinations.ts'
import './screens/repositories.ts'
