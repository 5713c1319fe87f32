const lines = ['Acme Trading Ltd.', 'Invoice 1900000001', '', 'One document relay, installed       1,000.00 EUR', 'Due within 30 days']

const escaped = (text: string) => text.replaceAll(/[\\()]/g, String.raw`\$&`)

/** Creates a one-page PDF 1.4 (ISO 32000, with a classic cross-reference table) without a library. */
export const invoicePdf = (number: string): Buffer => {
  const text = [...lines, `Reference ${number}`].map((line) => `(${escaped(line)}) Tj T*`).join('\n')
  const stream = `BT /F1 14 Tf 72 760 Td 22 TL\n${text}\nET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let body = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = body.length
    body += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  return Buffer.from(`${body}${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF\n`, 'latin1')
}
