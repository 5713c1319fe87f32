// For the knex command line: `node node_modules/knex/bin/cli.js migrate:status`. The product itself runs `relay migrate`.
import { migrationSource } from './src/db/migrations.ts'

export default {
  client: 'pg',
  connection: process.env.DATABASE_URL,
  migrations: { migrationSource },
}
