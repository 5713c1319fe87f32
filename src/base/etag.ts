/** Returns whether an ETag names a version. Gateways send one that is empty, or of quotation marks only, for what they do not know. */
export const namesVersion = (etag: string | undefined): boolean => etag !== undefined && /[^"\s]/.test(etag.replace(/^W\//, ''))
