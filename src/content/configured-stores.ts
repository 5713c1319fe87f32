import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { createFilesStore } from './files.ts'
import { createPostgresStore } from './postgres.ts'
import { createS3Store } from './s3.ts'

/** Creates the stores that the configuration names. PostgreSQL is always one of them. */
export const createStores = (db: Database, config: Config) => {
  const postgres = createPostgresStore(db)
  return {
    postgres,
    s3: config.CONTENT_S3_BUCKET ? createS3Store(db, { ...config, CONTENT_S3_BUCKET: config.CONTENT_S3_BUCKET }) : undefined,
    files: config.CONTENT_DIR ? createFilesStore(db, postgres, { ...config, CONTENT_DIR: config.CONTENT_DIR }) : undefined,
  }
}
