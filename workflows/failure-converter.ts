import { DefaultFailureConverter, type ProtoFailure } from '@temporalio/common'
import { plainLines, plainText } from '../src/base/text.ts'

// Several errors may stand in one message, one for each destination.
const messageMaxCharacters = 10_000
const stackMaxCharacters = 20_000
const typeMaxCharacters = 255

/** Returns a failure with plain texts only. Its cause has been converted before. */
const plainFailure = ({ message, stackTrace, applicationFailureInfo: info, ...rest }: ProtoFailure): ProtoFailure => ({
  ...rest,
  ...(message != null && { message: plainText(message, messageMaxCharacters) }),
  ...(stackTrace != null && { stackTrace: plainLines(stackTrace, stackMaxCharacters) }),
  ...(info && { applicationFailureInfo: { ...info, ...(info.type != null && { type: plainText(info.type, typeMaxCharacters) }) } }),
})

/**
 * Converts every error that leaves an activity or a workflow, including those of libraries. The core of the SDK refuses a text that is no UTF-8, and
 * ends the worker with all that it is doing; the texts of the relay's own errors are plain before they come here.
 */
class PlainFailureConverter extends DefaultFailureConverter {
  override errorToFailure(...given: Parameters<DefaultFailureConverter['errorToFailure']>): ProtoFailure {
    return plainFailure(super.errorToFailure(...given))
  }
}

/** The name that the SDK looks for. */
export const failureConverter = new PlainFailureConverter()
