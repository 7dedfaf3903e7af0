/** The contrast of two colours as WCAG 2.2 defines it. */

export type Theme = "light" | "dark";

export type Tokens = Map<string, Record<Theme, string>>;

const TOKEN = /--([\w-]+):\s*light-dark\(\s*(#[0-9a-f]{6,8})\s*,\s*(#[0-9a-f]{6,8})\s*\)\s*;/gi;

/** The colour tokens of a style sheet: every `--name: light-dark(#light, #dark);`. */
export function colourTokens(css: string): Tokens {
  const tokens: Tokens = new Map();
  for (const [, name, light, dark] of css.matchAll(TOKEN)) {
    if (name && light && dark) tokens.set(name, { light, dark });
  }
  return tokens;
}

export function contrastRatio(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
