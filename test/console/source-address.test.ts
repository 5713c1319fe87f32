import { sourceAddress } from '../../console/source-address.ts'

test('the values for the source system follow from the address of the console', () => {
  expect(sourceAddress('https://relay.example.com/console/', 'acme', 'invoices')).toEqual({
    host: 'relay.example.com',
    port: '443',
    isTls: true,
    script: 'receiver/acme/invoices',
    isLocal: false,
  })
  expect(sourceAddress('http://127.0.0.1:8080/console/', 'acme', 'invoices')).toMatchObject({ port: '8080', isTls: false, isLocal: true })
  expect(sourceAddress('http://relay/console/', 'acme', 'invoices')).toMatchObject({ host: 'relay', port: '80', isLocal: false })
})

test('a path in front of the relay is part of the script', () => {
  const { script, port } = sourceAddress('https://erp.example.com:8443/relay/console/', 'acme', 'invoices')
  expect([script, port]).toEqual(['relay/receiver/acme/invoices', '8443'])
})
