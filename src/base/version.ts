/** The version of the relay. Must equal the version in package.json; a test compares them. */
export const version = '0.1.0'
