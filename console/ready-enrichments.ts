// Ready enrichments, from which the form of a new one can start. `npm run docs` also writes them to docs/enrichments.

/** An enrichment without what only its installation knows. The name of its file is its key. */
interface ReadyEnrichment {
  name: string
  wait_seconds?: number
  late_days?: number
  http?: { url: string }
  steps: readonly object[]
}

export const readyEnrichments = {
  'fi-invoice': {
    name: 'FI invoices',
    http: {
      url: 'https://erp.example.com:44300/sap/opu/odata/sap',
    },
    steps: [
      {
        kind: 'link',
      },
      {
        kind: 'http',
        name: 'journal_entry',
        when: {
          erp_object_type: ['BKPF'],
        },
        path: "/API_OPLACCTGDOCITEMCUBE_SRV/A_OperationalAcctgDocItemCube?$format=json&$filter=CompanyCode%20eq%20'{erp_object_id[0:4]}'%20and%20AccountingDocument%20eq%20'{erp_object_id[4:14]}'%20and%20FiscalYear%20eq%20'{erp_object_id[14:18]}'",
        fields: [
          {
            name: 'company_code',
            path: '$.d.results[*].CompanyCode',
          },
          {
            name: 'vendor',
            path: "$.d.results[?@.Supplier != ''].Supplier",
          },
          {
            name: 'reference',
            path: "$.d.results[?@.DocumentReferenceID != ''].DocumentReferenceID",
            optional: true,
          },
          {
            name: 'total',
            path: "$.d.results[?@.Supplier != ''].AmountInTransactionCurrency",
            type: 'number',
          },
          {
            name: 'currency',
            path: '$.d.results[*].TransactionCurrency',
          },
          {
            name: 'document_date',
            path: '$.d.results[*].DocumentDate',
            type: 'date',
          },
        ],
      },
      {
        kind: 'http',
        name: 'supplier',
        when: {
          erp_object_type: ['BKPF'],
        },
        path: "/API_BUSINESS_PARTNER/A_Supplier('{vendor|trim_zeros}')?$format=json",
        fields: [
          {
            name: 'vendor_name',
            path: '$.d.SupplierName',
          },
        ],
      },
    ],
  },
  'mm-invoice': {
    name: 'MM invoices',
    steps: [
      {
        kind: 'link',
      },
      {
        kind: 'rfc',
        name: 'invoice',
        when: {
          erp_object_type: ['RMRP', 'BUS2081'],
        },
        function: 'BAPI_INCOMINGINVOICE_GETDETAIL',
        imports: {
          INVOICEDOCNUMBER: '{erp_object_id[0:10]}',
          FISCALYEAR: '{erp_object_id[10:14]}',
        },
        tables: {
          RETURN: [],
          ITEMDATA: [],
        },
        fields: [
          {
            name: 'company_code',
            path: '$.exports.HEADERDATA.COMP_CODE',
          },
          {
            name: 'vendor',
            path: '$.exports.HEADERDATA.DIFF_INV',
          },
          {
            name: 'reference',
            path: '$.exports.HEADERDATA.REF_DOC_NO',
            optional: true,
          },
          {
            name: 'total',
            path: '$.exports.HEADERDATA.GROSS_AMOUNT',
            type: 'number',
          },
          {
            name: 'currency',
            path: '$.exports.HEADERDATA.CURRENCY',
          },
          {
            name: 'document_date',
            path: '$.exports.HEADERDATA.DOC_DATE',
            type: 'date',
          },
          {
            name: 'purchase_order',
            path: '$.tables.ITEMDATA[*].PO_NUMBER',
            optional: true,
          },
        ],
      },
      {
        kind: 'rfc',
        name: 'vendor',
        when: {
          erp_object_type: ['RMRP', 'BUS2081'],
        },
        function: 'BAPI_VENDOR_GETDETAIL',
        imports: {
          VENDORNO: '{vendor}',
          COMPANYCODE: '{company_code}',
        },
        fields: [
          {
            name: 'vendor_name',
            path: '$.exports.GENERALDETAIL.NAME',
          },
        ],
      },
    ],
  },
  'sales-order': {
    name: 'Sales orders',
    http: {
      url: 'https://erp.example.com:44300/sap/opu/odata/sap',
    },
    steps: [
      {
        kind: 'link',
      },
      {
        kind: 'http',
        name: 'order',
        when: {
          erp_object_type: ['VBAK', 'BUS2032'],
        },
        path: "/API_SALES_ORDER_SRV/A_SalesOrder('{erp_object_id[0:10]|trim_zeros}')?$format=json",
        fields: [
          {
            name: 'customer',
            path: '$.d.SoldToParty',
          },
          {
            name: 'customer_reference',
            path: '$.d.PurchaseOrderByCustomer',
            optional: true,
          },
          {
            name: 'total',
            path: '$.d.TotalNetAmount',
            type: 'number',
          },
          {
            name: 'currency',
            path: '$.d.TransactionCurrency',
          },
          {
            name: 'document_date',
            path: '$.d.SalesOrderDate',
            type: 'date',
          },
        ],
      },
      {
        kind: 'http',
        name: 'customer',
        when: {
          erp_object_type: ['VBAK', 'BUS2032'],
        },
        path: "/API_BUSINESS_PARTNER/A_Customer('{customer|trim_zeros}')?$format=json",
        fields: [
          {
            name: 'customer_name',
            path: '$.d.CustomerName',
          },
        ],
      },
    ],
  },
  'purchase-order': {
    name: 'Purchase orders',
    http: {
      url: 'https://erp.example.com:44300/sap/opu/odata/sap',
    },
    steps: [
      {
        kind: 'link',
      },
      {
        kind: 'http',
        name: 'order',
        when: {
          erp_object_type: ['EKKO', 'BUS2012'],
        },
        path: "/API_PURCHASEORDER_PROCESS_SRV/A_PurchaseOrder('{erp_object_id[0:10]}')?$format=json",
        fields: [
          {
            name: 'company_code',
            path: '$.d.CompanyCode',
          },
          {
            name: 'vendor',
            path: '$.d.Supplier',
          },
          {
            name: 'currency',
            path: '$.d.DocumentCurrency',
          },
          {
            name: 'document_date',
            path: '$.d.PurchaseOrderDate',
            type: 'date',
          },
        ],
      },
      {
        kind: 'http',
        name: 'supplier',
        when: {
          erp_object_type: ['EKKO', 'BUS2012'],
        },
        path: "/API_BUSINESS_PARTNER/A_Supplier('{vendor|trim_zeros}')?$format=json",
        fields: [
          {
            name: 'vendor_name',
            path: '$.d.SupplierName',
          },
        ],
      },
    ],
  },
  hr: {
    name: 'Personnel files',
    steps: [
      {
        kind: 'link',
      },
      {
        kind: 'rfc',
        name: 'employee',
        when: {
          erp_object_type: ['PREL'],
        },
        function: 'BAPI_EMPLOYEE_GETDATA',
        imports: {
          EMPLOYEE_ID: '{erp_object_id[0:8]}',
          DATE: '{received_date}',
        },
        tables: {
          ORG_ASSIGNMENT: [],
        },
        fields: [
          {
            name: 'personnel_number',
            path: '$.tables.ORG_ASSIGNMENT[*].PERNO',
          },
          {
            name: 'company_code',
            path: '$.tables.ORG_ASSIGNMENT[*].COMP_CODE',
          },
          {
            name: 'personnel_area',
            path: '$.tables.ORG_ASSIGNMENT[*].PERS_AREA',
            optional: true,
          },
        ],
      },
    ],
  },
  'e-invoice': {
    name: 'Electronic invoices',
    wait_seconds: 30,
    late_days: 0,
    steps: [
      {
        kind: 'e_invoice',
      },
    ],
  },
} satisfies Record<string, ReadyEnrichment>

export type ReadyName = keyof typeof readyEnrichments
