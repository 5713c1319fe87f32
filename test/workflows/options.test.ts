import { businessObjectAttribute, searchAttributes } from '../../workflows/options.ts'

test('a business object is cut to what a SQL visibility store accepts, without half a character', () => {
  const cut = (value: string) => businessObjectAttribute(value).map((attribute) => attribute.value)
  expect(businessObjectAttribute(undefined)).toEqual([])
  expect(businessObjectAttribute('BKPF/1900004711')).toEqual([{ key: searchAttributes.businessObject, value: 'BKPF/1900004711' }])
  expect(cut(`${'T'.repeat(255)}/${'4'.repeat(255)}`)).toEqual(['T'.repeat(255)])
  expect(cut(`${'T'.repeat(254)}𝄞`)).toEqual([`${'T'.repeat(254)}\uFFFD`])
})
