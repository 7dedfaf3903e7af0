export type TextPart = { text: string; href?: string };

const ADDRESS = /https?:\/\/[^\s<>"'`{}|\\^[\]]+/g;

/** Split text into plain parts and http(s) addresses, without the punctuation that ends a sentence. */
export function linkify(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let done = 0;
  for (const match of text.matchAll(ADDRESS)) {
    const href = trimEnd(match[0]);
    if (!isAddress(href)) continue;
    if (match.index > done) parts.push({ text: text.slice(done, match.index) });
    parts.push({ text: href, href });
    done = match.index + href.length;
  }
  if (done < text.length) parts.push({ text: text.slice(done) });
  return parts;
}

function trimEnd(address: string): string {
  let text = address.replace(/[.,;:!?]+$/, "");
  while (text.endsWith(")") && count(text, ")") > count(text, "(")) text = text.slice(0, -1);
  return text;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

function isAddress(text: string): boolean {
  return URL.canParse(text);
}
