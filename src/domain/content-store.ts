/**
 * Place of the bytes of a content: in `content_chunks`, in an object of the bucket, in a file below CONTENT_DIR, or at the destination that is the
 * home of its repository.
 */
export type ContentStoreKind = 'postgres' | 's3' | 'files' | 'home'
