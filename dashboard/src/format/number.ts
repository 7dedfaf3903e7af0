const WHOLE = new Intl.NumberFormat("en-US");

/** `12,345`; `≥ 10,000` if it was counted only up to there. */
export function count(value: number, isCapped = false): string {
  return isCapped ? `≥ ${WHOLE.format(value)}` : WHOLE.format(value);
}

/** `2.50` of money, `12,000` or `0.125` of anything else. */
export function amount(value: number, isMoney: boolean): string {
  const digits = isMoney && !Number.isInteger(value) ? 2 : 0;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: Math.max(digits, 6),
  });
}

/** `1 job`, `3 jobs`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${WHOLE.format(value)} ${value === 1 ? one : many}`;
}

const SIZES = ["bytes", "kB", "MB", "GB", "TB"];

/** `213 MB`. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "—";
  let [size, unit] = [value, 0];
  while (size >= 1000 && unit < SIZES.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit > 0 && size < 10 ? size.toFixed(1) : Math.round(size)} ${SIZES[unit]}`;
}

/** `0.4 %`; `—` if there is nothing to divide by. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "—";
  const share = (100 * part) / whole;
  return `${share > 0 && share < 10 ? share.toFixed(1).replace(/\.0$/, "") : Math.round(share)} %`;
}
