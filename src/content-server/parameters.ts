// The parameters of each command of the HTTP Content Server interface.

interface ParameterRule {
  name: ParameterName
  mandatory?: boolean
  /** A secKey signs the value. The signed parameters stand in this table in the order in which clients send them. */
  signed?: boolean
}

export interface CommandRule {
  command: CommandName
  methods: string[]
  /** Letter that accessMode must contain; null if the command is never signed. */
  access: 'r' | 'c' | 'u' | 'd' | null
  parameters: ParameterRule[]
}

export type CommandName =
  | 'serverInfo'
  | 'append'
  | 'attrSearch'
  | 'create'
  | 'delete'
  | 'docGet'
  | 'get'
  | 'getCert'
  | 'info'
  | 'mCreate'
  | 'putCert'
  | 'search'
  | 'update'

const nameMaxCharacters = 255
const contentTypeMaxCharacters = 1_024

const hasControlCharacter = (text: string): boolean => /\p{Cc}/u.test(text)

// Bytes of Windows-1252 without a meaning become control characters of Latin-1: a name may contain them.
const asciiControl = /(?![\u0080-\u009f])\p{Cc}/u
// Source systems percent-encode some names once more: a character becomes nine.
const encodedCharacter = /%[c-f][0-9a-f](?:%[89ab][0-9a-f])+/gi
// An index has to hold it.
const compIdMaxBytes = 2_400

/** Returns true for the name of a component: at most 255 characters, as source systems count them. */
export const isCompId = (value: string): boolean =>
  value.length > 0 &&
  value.replaceAll(encodedCharacter, 'x').length <= nameMaxCharacters &&
  Buffer.byteLength(value) <= compIdMaxBytes &&
  !asciiControl.test(value)

// A part has headers that no HTTP library has checked. NUL can be neither stored nor sent.
const headerValue = /^[\t\x20-\x7e\x80-\xff]+$/

/** Returns true for the content type of a component, with its parameters and one character per byte. */
export const isContentType = (value: string): boolean => value.length <= contentTypeMaxCharacters && headerValue.test(value)

const isName = (value: string) => value.length > 0 && value.length <= nameMaxCharacters && !hasControlCharacter(value)

interface Format {
  accepts(value: string): boolean
  expected: string
}

const matching = (pattern: RegExp, expected: string): Format => ({ accepts: (value) => pattern.test(value), expected })

/** The pattern of a `docId`, and what it says in words. */
export const docIdFormat = { pattern: /^[A-Za-z0-9._-]{1,128}$/, expected: '1 to 128 of A-Z a-z 0-9 . _ -' }

/** Formats of the values, for all commands. Parameters of signatures are checked together with the signature. */
export const formats = {
  contRep: { accepts: isName, expected: `1 to ${nameMaxCharacters} characters` },
  docId: matching(docIdFormat.pattern, docIdFormat.expected),
  compId: { accepts: isCompId, expected: `1 to ${nameMaxCharacters} characters without control characters` },
  pVersion: matching(/^004[567]$/, '0045, 0046 or 0047'),
  docProt: matching(/^[rcud]{0,4}$/, 'up to four of the letters r, c, u and d'),
  resultAs: matching(/^(ascii|html)$/, 'ascii or html'),
  fromOffset: matching(/^\d{1,15}$/, 'a byte offset'),
  toOffset: matching(/^(-1|\d{1,15})$/, 'a byte offset, or -1 for the end'),
  // Checked by the commands, byte by byte.
  pattern: undefined,
  caseSensitive: matching(/^[ny]$/, 'n or y'),
  numResults: matching(/^\d{1,15}$/, 'a number'),
  scanPerformed: undefined,
  accessMode: undefined,
  authId: undefined,
  expiration: undefined,
  secKey: undefined,
} satisfies Record<string, Format | undefined>

export type ParameterName = keyof typeof formats

const contRep: ParameterRule = { name: 'contRep', mandatory: true, signed: true }
const docId: ParameterRule = { name: 'docId', mandatory: true, signed: true }
const pVersion: ParameterRule = { name: 'pVersion', mandatory: true }
const docProt: ParameterRule = { name: 'docProt', signed: true }
// The flag of a virus scanner. Newer clients sign it in commands that change a component; the interface does not mention it.
const scanPerformed: ParameterRule = { name: 'scanPerformed', signed: true }
const searched: ParameterRule[] = [
  { name: 'pattern', mandatory: true },
  { name: 'caseSensitive' },
  { name: 'fromOffset' },
  { name: 'toOffset' },
  { name: 'numResults' },
]
const signature: ParameterRule[] = [
  { name: 'accessMode', signed: true },
  { name: 'authId', signed: true },
  { name: 'expiration', signed: true },
  { name: 'secKey' },
]

export const commandRules: CommandRule[] = [
  {
    command: 'serverInfo',
    methods: ['GET'],
    access: null,
    // Administrators call serverInfo from a browser, without parameters.
    parameters: [{ name: 'contRep' }, { name: 'pVersion' }, { name: 'resultAs' }],
  },
  {
    // Every client may send a certificate. It is inactive until an operator activates it.
    command: 'putCert',
    methods: ['PUT'],
    access: null,
    parameters: [{ name: 'contRep', mandatory: true }, { name: 'authId', mandatory: true }, pVersion],
  },
  {
    command: 'getCert',
    methods: ['GET'],
    access: null,
    parameters: [{ name: 'contRep', mandatory: true }, pVersion],
  },
  {
    command: 'info',
    methods: ['GET'],
    access: 'r',
    parameters: [contRep, docId, { name: 'compId' }, pVersion, { name: 'resultAs' }, ...signature],
  },
  {
    command: 'get',
    methods: ['GET', 'HEAD'],
    access: 'r',
    parameters: [contRep, docId, { name: 'compId' }, pVersion, { name: 'fromOffset' }, { name: 'toOffset' }, ...signature],
  },
  { command: 'docGet', methods: ['GET'], access: 'r', parameters: [contRep, docId, pVersion, ...signature] },
  {
    command: 'create',
    methods: ['PUT'],
    access: 'c',
    parameters: [contRep, docId, { name: 'compId', mandatory: true, signed: true }, pVersion, docProt, ...signature],
  },
  {
    // The parts of the body name the components.
    command: 'create',
    methods: ['POST'],
    access: 'c',
    parameters: [contRep, docId, pVersion, docProt, ...signature],
  },
  { command: 'mCreate', methods: ['POST'], access: 'c', parameters: [contRep, docId, pVersion, docProt, ...signature] },
  {
    command: 'update',
    methods: ['PUT'],
    access: 'u',
    parameters: [contRep, docId, { name: 'compId', mandatory: true, signed: true }, pVersion, scanPerformed, ...signature],
  },
  {
    command: 'append',
    methods: ['PUT'],
    access: 'u',
    parameters: [contRep, docId, { name: 'compId', mandatory: true, signed: true }, pVersion, scanPerformed, ...signature],
  },
  { command: 'update', methods: ['POST'], access: 'u', parameters: [contRep, docId, pVersion, scanPerformed, ...signature] },
  {
    command: 'delete',
    methods: ['GET', 'DELETE'],
    access: 'd',
    parameters: [contRep, docId, { name: 'compId', signed: true }, pVersion, ...signature],
  },
  {
    command: 'search',
    methods: ['GET'],
    access: 'r',
    parameters: [contRep, docId, { name: 'compId', mandatory: true }, pVersion, ...searched, ...signature],
  },
  { command: 'attrSearch', methods: ['GET'], access: 'r', parameters: [contRep, docId, pVersion, ...searched, ...signature] },
]
