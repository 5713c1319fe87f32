const long = `${'ä'.repeat(140)}.pdf`

/** Paths of documents with their names at targets that accept any, and at those that are or feed Windows. */
export const names: [path: string, any: string | RegExp, windows: string | RegExp][] = [
  ['R1/a.pdf', 'R1/a.pdf', 'R1/a.pdf'],
  ['CON', 'CON', '%43ON'],
  ['con.pdf', 'con.pdf', '%63on.pdf'],
  ['Aux.tar.gz', 'Aux.tar.gz', '%41ux.tar.gz'],
  ['NUL .pdf', 'NUL .pdf', '%4EUL .pdf'],
  ['COM1/LPT9.txt', 'COM1/LPT9.txt', '%43OM1/%4CPT9.txt'],
  ['COM¹', 'COM¹', '%43OM¹'],
  ['CONIN$', 'CONIN$', '%43ONIN$'],
  ['CONTRACT.pdf', 'CONTRACT.pdf', 'CONTRACT.pdf'],
  ['COM10', 'COM10', 'COM10'],
  ['a:b', 'a:b', 'a%3Ab'],
  ['a.pdf::$DATA', 'a.pdf::$DATA', 'a.pdf%3A%3A$DATA'],
  ['"a*b<c>d?e|f".pdf', '"a*b<c>d?e|f".pdf', '%22a%2Ab%3Cc%3Ed%3Fe%7Cf%22.pdf'],
  ['back\\slash', 'back%5Cslash', 'back%5Cslash'],
  ['end.', /^end(\.|%2E)$/, 'end%2E'],
  ['end ', 'end ', 'end%20'],
  ['end. ./x', /^end(\. \.|\. %2E)\/x$/, 'end%2E%20%2E/x'],
  ['...', /^(\.\.\.|\.\.%2E)$/, '%2E%2E%2E'],
  [' a', ' a', '%20a'],
  ['50%253A', '50%253A', '50%253A'],
  ['50%', '50%', '50%'],
  ['.hidden', '.hidden', '.hidden'],
  ['Prüfung.pdf', 'Prüfung.pdf', 'Prüfung.pdf'],
  ['Pru\u0308fung.pdf', 'Pru\u0308fung.pdf', /^Prüfung~[0-9a-f]{16}\.pdf$/],
  ['100 \u212A', '100 \u212A', /^100 K~[0-9a-f]{16}$/],
  [long, /^ä+~[0-9a-f]{16}\.pdf$/, /^ä+~[0-9a-f]{16}\.pdf$/],
  [`${'x'.repeat(251)}.pdf`, `${'x'.repeat(251)}.pdf`, `${'x'.repeat(251)}.pdf`],
  ['請求書 🧾.pdf', '請求書 🧾.pdf', '請求書 🧾.pdf'],
]

/**
 * Names of components as source systems send them in a URL, as the relay keeps and finds them, and as files are called for which nothing else says a
 * name: `{file_name}`.
 */
export const realNames: [sent: string, key: string, fileName: string][] = [
  ['data', 'data', 'data.pdf'],
  ['Pr%C3%BCfung.pdf', 'Prüfung.pdf', 'Prüfung.pdf'],
  ['Pr%FCfung%20%96%20%80.pdf', 'Prüfung – €.pdf', 'Prüfung – €.pdf'],
  ['%84Zitat%93.docx', '„Zitat“.docx', '„Zitat“.docx'],
  ['ISO%20%25EC%259A%25B4%25EC%2586%25A1.hwp', 'ISO %EC%9A%B4%EC%86%A1.hwp', 'ISO 운송.hwp'],
  ['Rechnung%2520M%25C3%25BCller.pdf', 'Rechnung%20M%C3%BCller.pdf', 'Rechnung Müller.pdf'],
  ['Rechnung%201%2F2024.pdf', 'Rechnung 1/2024.pdf', 'Rechnung 1%2F2024.pdf'],
  ['a%252Fb.pdf', 'a%2Fb.pdf', 'a%252Fb.pdf'],
  ['Rabatt%2020%25ab', 'Rabatt 20%ab', 'Rabatt 20%25ab.pdf'],
  ['100%25.pdf', '100%.pdf', '100%.pdf'],
  ['Angebot%20v1.2', 'Angebot v1.2', 'Angebot v1.2.pdf'],
]
