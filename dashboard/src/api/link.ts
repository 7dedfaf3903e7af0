/** The secret of a one-time link, from the link or the bare secret; null for a token. */
export function linkSecret(text: string): string | null {
  // `laneway principals login` prints the secret alone.
  if (text.startsWith("lwl_")) return text;
  if (!/^https?:\/\//i.test(text)) return null;
  return URL.canParse(text) ? new URL(text).searchParams.get("link") : null;
}
