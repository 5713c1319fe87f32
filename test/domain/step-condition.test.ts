import { applicability, type StepCondition } from '../../src/domain/step-condition.ts'

const bkpf = { erp_object_type: 'BKPF', ar_object: 'FIIINVOICE' }

test.each<[string, StepCondition, Record<string, string>, string[], ReturnType<typeof applicability>]>([
  ['the type is one of them', { erp_object_type: ['RMRP', 'BKPF'] }, bkpf, [], { decision: 'apply' }],
  ['the type in lower case', { erp_object_type: ['bkpf'] }, bkpf, [], { decision: 'apply' }],
  ['another type', { erp_object_type: ['RMRP'] }, bkpf, [], { decision: 'skip', reason: 'erp_object_type is BKPF' }],
  ['no type yet', { erp_object_type: ['RMRP'] }, {}, ['erp_object_type'], { decision: 'wait', reason: 'erp_object_type is not known yet' }],
  ['no type, for good', { erp_object_type: ['RMRP'] }, {}, [], { decision: 'skip', reason: 'erp_object_type has no value' }],
  ['another document type', { ar_object: ['MMILOGINV'] }, bkpf, [], { decision: 'skip', reason: 'ar_object is FIIINVOICE' }],
  ['a field', { fields: ['vendor'] }, { vendor: '1' }, [], { decision: 'apply' }],
  ['a field is missing for good', { fields: ['vendor'] }, {}, [], { decision: 'skip', reason: 'vendor has no value' }],
  ['a field may come', { fields: ['vendor'] }, {}, ['vendor'], { decision: 'wait', reason: 'vendor is not known yet' }],
  [
    'one that is not met decides before one that may be',
    { fields: ['vendor', 'order'] },
    {},
    ['vendor'],
    { decision: 'skip', reason: 'order has no value' },
  ],
  [
    'another type decides before a field that may come',
    { erp_object_type: ['RMRP'], fields: ['vendor'] },
    bkpf,
    ['vendor'],
    { decision: 'skip', reason: 'erp_object_type is BKPF' },
  ],
  ['all are met', { erp_object_type: ['BKPF'], ar_object: ['FIIINVOICE'], fields: ['a'] }, { ...bkpf, a: '1' }, [], { decision: 'apply' }],
])('%s', (_, condition, values, open, expected) => {
  expect(applicability(condition, { values, isOpen: (name) => open.includes(name) })).toEqual(expected)
})
