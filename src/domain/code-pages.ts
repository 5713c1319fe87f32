/** Encodings of names in requests that are not UTF-8, by their labels in the Encoding Standard. Front ends of source systems have one of them. */
export const codePages = [
  'windows-1252',
  'windows-1250',
  'windows-1251',
  'windows-1253',
  'windows-1254',
  'windows-1255',
  'windows-1256',
  'windows-1257',
  'windows-1258',
  'windows-874',
  'shift_jis',
  'gb18030',
  'big5',
  'euc-kr',
] as const

export type CodePage = (typeof codePages)[number]
