import { statfs } from 'node:fs/promises'
import { Gauge, type Metric } from 'prom-client'

/** Returns the number of bytes that this user can still write to the file system of a directory. */
export const readFreeBytes = async (directory: string): Promise<number> => {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}

/** Of the embedded stack only. */
export const dataDirMetricName = 'relay_data_dir_free_bytes'

export const createDataDirMetric = (dataDir: string): Metric =>
  new Gauge({
    name: dataDirMetricName,
    help: 'Free bytes of the disk with RELAY_DATA_DIR, on which the embedded PostgreSQL and Temporal store their data',
    registers: [],
    async collect() {
      this.set(await readFreeBytes(dataDir).catch(() => Number.NaN))
    },
  })
