const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character]!)

/** A plain page for whoever asks with resultAs=html. `content` is HTML already. */
export const page = (title: string, content: string): string =>
  `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>\n<body><h1>${escapeHtml(title)}</h1>${content}</body></html>\n`
