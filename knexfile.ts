// For the command line of knex: `npx knex migrate:list`. The product itself runs `relay migrate`.
import { migrationSource } from './src/db/migrations.ts'

export default {
  client: 'pg',
  connection: process.env.DATABASE_URL,
  migrations: { migrationSource },
}
