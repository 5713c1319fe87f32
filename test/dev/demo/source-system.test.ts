import { startSourceSystem } from '../../../src/dev/demo/source-system.ts'

type Sap = Awaited<ReturnType<typeof startSourceSystem>>

const ask = async ({ url, credentials: { user, password } }: Sap, path: string, body?: string): Promise<string> => {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization },
    body: body ?? null,
  })
  return response.text()
}

const detail = (number: string, year: string) =>
  `<BAPI_INCOMINGINVOICE_GETDETAIL><INVOICEDOCNUMBER>${number}</INVOICEDOCNUMBER><FISCALYEAR>${year}</FISCALYEAR></BAPI_INCOMINGINVOICE_GETDETAIL>`
const links = '<ARCHIV_GET_CONNECTIONS><ARCHIV_ID>Z1</ARCHIV_ID><ARC_DOC_ID>DOC1</ARC_DOC_ID></ARCHIV_GET_CONNECTIONS>'

test('the stand-in for SAP answers for the invoices that it has, and says of others that they do not exist', async () => {
  const sap = await startSourceSystem()
  try {
    expect(await ask(sap, '/sap/bc/soap/rfc', detail('5105600101', '2026'))).toContain('does not exist')
    await ask(sap, '/sap/bc/soap/rfc', links)
    const known = await ask(sap, '/sap/bc/soap/rfc', detail('5105600101', '2026'))
    expect(known).toContain('<DIFF_INV>0000017300</DIFF_INV>')
    expect(known).not.toContain('does not exist')
    // The key of another kind of invoice, cut as that of this one would be.
    for (const [number, year] of [
      ['1000190000', '0006'],
      ['5105600101', '2025'],
      ['5105600102', '2026'],
    ] as const) {
      const other = await ask(sap, '/sap/bc/soap/rfc', detail(number, year))
      expect(other).toContain('<DIFF_INV/>')
      expect(other).toContain('<TYPE>E</TYPE>')
    }
    const items = async (company: string, number: string, year: string): Promise<unknown[]> => {
      const filter = `CompanyCode eq '${company}' and AccountingDocument eq '${number}' and FiscalYear eq '${year}'`
      const answer = await ask(sap, `${sap.itemsPath}?$format=json&$filter=${encodeURIComponent(filter)}`)
      return (JSON.parse(answer) as { d: { results: unknown[] } }).d.results
    }
    expect(await items('1000', '1900000001', '2026')).toHaveLength(1)
    expect(await items('2000', '1900000001', '2026')).toEqual([])
    expect(await items('5105', '6001012026', '')).toEqual([])
  } finally {
    await sap.stop()
  }
})
