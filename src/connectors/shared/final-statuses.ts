// Pure, because the pages of the console use it.

/**
 * The statuses with which a server says something that no time changes, and what that is. Every other one is retried, known or not: locks,
 * conflicts, limits, a server that is not ready, a proxy that wants a login, and what a gateway makes up.
 */
export const finalStatuses: Readonly<Record<number, string>> = {
  400: 'the request is wrong',
  401: 'the credentials are refused',
  403: 'the account has no permission',
  404: 'there is nothing at this address',
  405: 'the method is not allowed at this address',
  406: 'the server has no answer in a form that the relay accepts',
  410: 'what was at this address is gone',
  411: 'a length is missing',
  412: 'a condition that the server demands is not met',
  413: 'the document is too large',
  414: 'the address is too long',
  415: 'the content type is not accepted',
  417: 'an expectation cannot be met',
  422: 'the content is not accepted',
  426: 'another protocol is demanded',
  428: 'a condition is demanded',
  431: 'the headers are too large',
  451: 'the law forbids it',
  // The request has come round in a circle (RFC 5842): the answer of a relay that has sent the document itself.
  508: 'the request has come back to where it came from',
}

/** @param waitMs the time after which the answer asks the relay to try again: then the refusal passes, whatever its status is */
export const isPermanentStatus = (status: number, waitMs?: number): boolean => waitMs === undefined && Object.hasOwn(finalStatuses, status)
