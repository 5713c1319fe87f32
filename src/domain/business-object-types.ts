// The key fields of the business objects that SAP's archive links name most often, as its object repository has them. A type that is not in
// the table is shown by its key as it is.

/** Words in the languages of the console. */
export interface Words {
  en: string
  de: string
}

export interface KeyField {
  /** Characters of the field in the key. The last field of a key may be shorter. */
  length: number
  /** `number`: shown without leading zeros. `year`: four digits. `code`: shown as it is. `rest`: not shown, and neither is what follows. */
  kind: 'number' | 'year' | 'code' | 'rest'
  /** Stands before the value. The first shown field has the label of the type. */
  label?: Words
  /** True if zeros, or blanks, mean that the field does not apply: it is not shown then. */
  mayBeEmpty?: true
}

export interface ObjectType {
  label: Words
  /** The fields in the order of the key. */
  fields: readonly KeyField[]
  /** Index of the field that people name the object by. It is shown first. */
  main: number
}

const number = (length: number): KeyField => ({ length, kind: 'number' })
const year: KeyField = { length: 4, kind: 'year' }
const code = (length: number, en: string, de: string): KeyField => ({ length, kind: 'code', label: { en, de } })
const company = code(4, 'company', 'Buchungskreis')
const item = (length: number): KeyField => ({ length, kind: 'number', label: { en: 'item', de: 'Position' }, mayBeEmpty: true })
const part = (length: number, en: string, de: string): KeyField => ({ length, kind: 'number', label: { en, de }, mayBeEmpty: true })
const rest: KeyField = { length: 40, kind: 'rest' }

const type = (en: string, de: string, fields: readonly KeyField[], main = 0): ObjectType => ({ label: { en, de }, fields, main })
/** An object that one number names. Its length may differ: a material has 18 characters, or 40 in S/4HANA. */
const numbered = (en: string, de: string, length = 10): ObjectType => type(en, de, [number(length)])
const accounting = (en: string, de: string): ObjectType => type(en, de, [company, number(10), year], 1)
const ofYear = (en: string, de: string): ObjectType => type(en, de, [number(10), year])

const incomingInvoice = ofYear('Incoming invoice', 'Eingangsrechnung')
const materialDocument = ofYear('Material document', 'Materialbeleg')
const purchaseOrder = numbered('Purchase order', 'Bestellung')
const requisition = numbered('Purchase requisition', 'Bestellanforderung')
const salesOrder = numbered('Sales order', 'Kundenauftrag')
const delivery = numbered('Delivery', 'Lieferung')
const customer = numbered('Customer', 'Debitor')
const vendor = numbered('Vendor', 'Kreditor')
const material = numbered('Material', 'Material', 40)
const equipment = numbered('Equipment', 'Equipment', 18)
const asset = type('Asset', 'Anlage', [company, number(12), part(4, 'sub-number', 'Unternummer')], 1)
const order = (en: string, de: string): ObjectType => numbered(en, de, 12)

export const objectTypes = {
  // Accounting
  BKPF: accounting('Invoice', 'Rechnung'),
  BSEG: type('Invoice', 'Rechnung', [company, number(10), year, item(3)], 1),
  FIPP: accounting('Parked document', 'Vorerfasster Beleg'),
  ANLA: asset,
  BUS1022: asset,
  BUS0012: type('Cost centre', 'Kostenstelle', [code(4, 'controlling area', 'Kostenrechnungskreis'), number(10)], 1),
  BUS2075: order('Internal order', 'Innenauftrag'),
  // Purchasing
  RMRP: incomingInvoice,
  BUS2081: incomingInvoice,
  EKKO: purchaseOrder,
  BUS2012: purchaseOrder,
  EKPO: type('Purchase order', 'Bestellung', [number(10), item(5)]),
  EBAN: type('Purchase requisition', 'Bestellanforderung', [number(10), item(5)]),
  BUS2009: type('Purchase requisition', 'Bestellanforderung', [number(10), item(5)]),
  BUS2105: requisition,
  BUS2010: numbered('Request for quotation', 'Anfrage'),
  BUS2013: numbered('Scheduling agreement', 'Lieferplan'),
  BUS2014: numbered('Purchase contract', 'Rahmenvertrag'),
  BUS2091: numbered('Service entry sheet', 'Leistungserfassungsblatt'),
  MKPF: materialDocument,
  BUS2017: materialDocument,
  // Sales and shipping
  VBRK: numbered('Billing document', 'Faktura'),
  VBAK: salesOrder,
  BUS2032: salesOrder,
  VBAP: type('Sales order', 'Kundenauftrag', [number(10), item(6)]),
  BUS2030: numbered('Customer inquiry', 'Kundenanfrage'),
  BUS2031: numbered('Quotation', 'Angebot'),
  BUS2034: numbered('Customer contract', 'Kundenkontrakt'),
  BUS2035: numbered('Customer scheduling agreement', 'Kundenlieferplan'),
  BUS2094: numbered('Credit memo request', 'Gutschriftsanforderung'),
  BUS2096: numbered('Debit memo request', 'Lastschriftsanforderung'),
  BUS2102: numbered('Customer return', 'Kundenretoure'),
  LIKP: delivery,
  BUS2015: numbered('Inbound delivery', 'Anlieferung'),
  VTTK: numbered('Shipment', 'Transport'),
  // Master data
  KNA1: customer,
  LFA1: vendor,
  BUS1006: numbered('Business partner', 'Geschäftspartner'),
  MARA: material,
  BUS1001: material,
  BUS1001006: material,
  EQUI: equipment,
  DRAW: type(
    'Document info record',
    'Dokumentinfosatz',
    [code(3, 'type', 'Art'), number(25), code(2, 'version', 'Version'), part(3, 'part', 'Teil')],
    1,
  ),
  // Production, maintenance and quality
  BUS2005: order('Production order', 'Fertigungsauftrag'),
  BUS2007: order('Maintenance order', 'Instandhaltungsauftrag'),
  BUS2088: order('Service order', 'Serviceauftrag'),
  BUS2038: order('Maintenance notification', 'Instandhaltungsmeldung'),
  BUS2078: order('Quality notification', 'Qualitätsmeldung'),
  BUS2080: order('Service notification', 'Servicemeldung'),
  BUS2045: order('Inspection lot', 'Prüflos'),
  // People
  PREL: type('Personnel file', 'Personalakte', [number(8), code(4, 'infotype', 'Infotyp'), rest]),
  PAPL: type('Applicant file', 'Bewerberakte', [number(8), rest]),
  BUS1065: numbered('Employee', 'Mitarbeiter', 8),
  BUS2089: type('Trip', 'Reise', [code(8, 'employee', 'Personalnummer'), number(10)], 1),
} satisfies Record<string, ObjectType>

/** Returns the type of a name in any case, or undefined if the table does not have it. */
export const objectTypeOf = (name: string | null): ObjectType | undefined => {
  const found = name?.trim().toUpperCase()
  return found !== undefined && Object.hasOwn(objectTypes, found) ? objectTypes[found as keyof typeof objectTypes] : undefined
}
