import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createFilesStore } from './files.ts'
import { createPostgresStore } from './postgres.ts'
import type { S3StoreConfig } from './s3.ts'

/** Creates the stores that the configuration names. PostgreSQL is always one of them. */
export const createStores = async (db: Database, config: Config) => {
  const postgres = createPostgresStore(db)
  return {
    postgres,
    s3: config.CONTENT_S3_BUCKET ? await openS3Store(db, { ...config, CONTENT_S3_BUCKET: config.CONTENT_S3_BUCKET }) : undefined,
    files: config.CONTENT_DIR ? createFilesStore(db, postgres, { ...config, CONTENT_DIR: config.CONTENT_DIR }) : undefined,
  }
}

const openS3Store = async (db: Database, config: S3StoreConfig) => {
  // Imports the SDK, which costs a process 34 MiB and 0.13 CPU-s.
  const { createS3Store } = await import('./s3.ts')
  return createS3Store(db, config)
}
