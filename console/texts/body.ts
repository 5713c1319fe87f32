export const en = {
  openPdf: 'Open the PDF',
  cut: (bytes: string) => `Only the first ${bytes} are shown.`,
  hex: 'No text: the first bytes are shown as hexadecimal numbers and ASCII.',
  part: (number: number) => `Part ${number}`,
  imageOf: (name: string) => `Picture: ${name}`,
  tooLarge: (bytes: string) => `The picture is larger than ${bytes} and is not shown.`,
}

export const de: typeof en = {
  openPdf: 'PDF öffnen',
  cut: (bytes) => `Nur die ersten ${bytes} werden angezeigt.`,
  hex: 'Kein Text: Die ersten Bytes stehen hier hexadezimal und in ASCII.',
  part: (number) => `Teil ${number}`,
  imageOf: (name) => `Bild: ${name}`,
  tooLarge: (bytes) => `Das Bild ist größer als ${bytes} und wird nicht angezeigt.`,
}
