// One PostgreSQL for the whole run; every test database is copied from a template that was migrated once.
import { openDatabase } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrations.ts'
import { databaseConfig, templateName } from './database.ts'

export default async () => {
  const serverUrl = process.env.TEST_DATABASE_URL
  if (!serverUrl) throw new Error('TEST_DATABASE_URL names no PostgreSQL server')

  const admin = openDatabase(databaseConfig(serverUrl), 'test setup')
  await admin.raw('drop database if exists ?? with (force)', [templateName])
  await admin.raw('create database ??', [templateName])
  await admin.destroy()

  const templateUrl = new URL(serverUrl)
  templateUrl.pathname = `/${templateName}`
  const template = openDatabase(databaseConfig(templateUrl.href), 'test template')
  await migrate(template)
  await template.destroy()
}
