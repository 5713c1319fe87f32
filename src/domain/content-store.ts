/** Place of the bytes of a content: in `content_chunks`, in an object of the bucket, or in a file below CONTENT_DIR. */
export type ContentStoreKind = 'postgres' | 's3' | 'files'
