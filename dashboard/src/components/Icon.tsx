import type { ReactNode, SVGProps } from "react";

/** Outlines on a 16 px grid, stroked with the colour of the text around them. */
const shapes = {
  play: <path d="M5 3.2v9.6L12.6 8z" />,
  pause: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  stop: <rect x="4" y="4" width="8" height="8" rx="1" />,
  check: <path d="m3 8.5 3.2 3.2L13 4.8" />,
  cross: <path d="m4 4 8 8M12 4l-8 8" />,
  minus: <path d="M3.5 8h9" />,
  plus: <path d="M8 3.5v9M3.5 8h9" />,
  clock: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.6V8l2.3 1.5" />
    </>
  ),
  hourglass: <path d="M4 2.5h8M4 13.5h8M5 2.5c0 3.4 6 4.2 6 11M11 2.5c0 3.4-6 4.2-6 11" />,
  warning: (
    <>
      <path d="M8 2.2 14.4 13.3H1.6z" />
      <path d="M8 6.4v3.2M8 11.5v.1" />
    </>
  ),
  info: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 7.4v3.4M8 5.1v.1" />
    </>
  ),
  error: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.9v3.6M8 10.9v.1" />
    </>
  ),
  success: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="m5.3 8.2 1.9 1.9 3.5-3.9" />
    </>
  ),
  failure: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="m5.8 5.8 4.4 4.4M10.2 5.8l-4.4 4.4" />
    </>
  ),
  cancelled: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="m3.8 3.8 8.4 8.4" />
    </>
  ),
  running: (
    <>
      <path d="M14 8a6 6 0 1 1-6-6" />
      <circle cx="8" cy="8" r="1.6" fill="currentColor" stroke="none" />
    </>
  ),
  spinner: <path d="M14 8a6 6 0 1 1-6-6" />,
  queued: <path d="M2.5 4h11M2.5 8h11M2.5 12h6" />,
  analysing: (
    <>
      <path d="M3 2.5h7l3 3v8H3z" />
      <path d="M5.5 11V9M8 11V6.8M10.5 11V8.2" />
    </>
  ),
  approval: (
    <>
      <circle cx="6.5" cy="5" r="2.6" />
      <path d="M1.8 13.4c.3-2.8 2-4.4 4.7-4.4 1 0 1.8.2 2.5.6M9.8 12.2l1.5 1.5 3-3.3" />
    </>
  ),
  retry: <path d="M13.2 6.2A5.6 5.6 0 1 0 13.6 9M13.6 2.6v3.6H10" />,
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" />
    </>
  ),
  search: (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.4 10.4 3.3 3.3" />
    </>
  ),
  "chevron-down": <path d="m4 6 4 4 4-4" />,
  unfold: <path d="m4.5 6 3.5-3.5L11.5 6M4.5 10 8 13.5 11.5 10" />,
  "chevron-up": <path d="m4 10 4-4 4 4" />,
  "chevron-left": <path d="m10 4-4 4 4 4" />,
  "chevron-right": <path d="m6 4 4 4-4 4" />,
  external: (
    <path d="M9.5 2.5h4v4M13.2 2.8 7.5 8.5M11.5 9.5v3a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1h3" />
  ),
  filter: <path d="M2 4h12M4.5 8h7M7 12h2" />,
  lane: <path d="M3 2.5v11M13 2.5v11M8 2.5v2.4M8 6.8v2.4M8 11.1v2.4" />,
  job: (
    <>
      <rect x="2.5" y="3" width="11" height="10" rx="1.5" />
      <path d="m5 6.2 2 1.8-2 1.8M8.6 10h2.4" />
    </>
  ),
  worker: (
    <>
      <rect x="2.5" y="2.5" width="11" height="4.5" rx="1" />
      <rect x="2.5" y="9" width="11" height="4.5" rx="1" />
      <path d="M5 4.75h.1M5 11.25h.1M8 4.75h3M8 11.25h3" />
    </>
  ),
  key: (
    <>
      <circle cx="5.2" cy="10.8" r="2.9" />
      <path d="m7.3 8.7 6-6M10.6 5.4l2 2" />
    </>
  ),
  user: (
    <>
      <circle cx="8" cy="5.4" r="2.9" />
      <path d="M2.6 13.6c.5-2.9 2.5-4.4 5.4-4.4s4.9 1.5 5.4 4.4" />
    </>
  ),
  users: (
    <>
      <circle cx="6" cy="5.5" r="2.5" />
      <path d="M1.5 13.3c.3-2.6 1.9-4.1 4.5-4.1s4.2 1.5 4.5 4.1M10.4 3.3a2.4 2.4 0 0 1 0 4.4M12 9.6c1.5.6 2.3 1.9 2.5 3.7" />
    </>
  ),
  lock: (
    <>
      <rect x="3" y="7" width="10" height="6.5" rx="1.2" />
      <path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2" />
    </>
  ),
  sun: (
    <>
      <circle cx="8" cy="8" r="2.9" />
      <path d="M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9" />
    </>
  ),
  moon: <path d="M13.4 9.6A5.8 5.8 0 0 1 6.4 2.6a5.8 5.8 0 1 0 7 7z" />,
  "half-moon": (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" stroke="none" />
    </>
  ),
  dots: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2.2" />,
  menu: <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />,
  "arrow-up": <path d="M8 13V3.2M3.8 7.2 8 3l4.2 4.2" />,
  "arrow-down": <path d="M8 3v9.8M3.8 8.8 8 13l4.2-4.2" />,
  "arrow-right": <path d="M3 8h9.8M8.8 3.8 13 8l-4.2 4.2" />,
  bolt: <path d="M9 1.8 3.2 9.2h4.1L6.8 14.2l6-7.6H8.5z" />,
  link: (
    <path d="M6.6 9.4a2.7 2.7 0 0 0 3.9 0l2.2-2.2a2.75 2.75 0 0 0-3.9-3.9l-.8.8M9.4 6.6a2.7 2.7 0 0 0-3.9 0L3.3 8.8a2.75 2.75 0 0 0 3.9 3.9l.8-.8" />
  ),
  trash: <path d="M2.5 4.2h11M6 4.2V2.5h4v1.7M4 4.2l.6 9.3h6.8l.6-9.3M6.7 6.8v4M9.3 6.8v4" />,
  edit: <path d="m10.6 2.8 2.6 2.6L5.8 12.8l-3.2.6.6-3.2zM9 4.4 11.6 7" />,
  history: <path d="M2.6 6.2A5.7 5.7 0 1 1 2.3 8.6M2.4 2.8v3.4h3.4M8 5v3.2l2.1 1.3" />,
  calendar: (
    <>
      <rect x="2.5" y="3.2" width="11" height="10.3" rx="1.5" />
      <path d="M2.5 6.6h11M5.5 1.8v2.6M10.5 1.8v2.6" />
    </>
  ),
  limit: <path d="M2.3 12a6.2 6.2 0 1 1 11.4 0M8 9.6l2.6-3.2" />,
  settings: <path d="M2.5 4.8h5M11.5 4.8h2M2.5 11.2h2M8.5 11.2h5M9.5 3v3.6M6.5 9.4V13" />,
  overview: (
    <>
      <rect x="2.5" y="2.5" width="4.6" height="6" rx="1" />
      <rect x="8.9" y="2.5" width="4.6" height="3.4" rx="1" />
      <rect x="8.9" y="7.5" width="4.6" height="6" rx="1" />
      <rect x="2.5" y="10.1" width="4.6" height="3.4" rx="1" />
    </>
  ),
  flow: (
    <>
      <circle cx="3.8" cy="8" r="1.8" />
      <circle cx="12.2" cy="3.9" r="1.8" />
      <circle cx="12.2" cy="12.1" r="1.8" />
      <path d="M5.5 7.2 10.5 4.7M5.5 8.8l5 2.5" />
    </>
  ),
  keyboard: (
    <>
      <rect x="1.5" y="4" width="13" height="8" rx="1.4" />
      <path d="M4 6.6h.1M6.7 6.6h.1M9.3 6.6h.1M12 6.6h.1M5 9.5h6" />
    </>
  ),
  database: (
    <>
      <ellipse cx="8" cy="3.9" rx="5" ry="1.9" />
      <path d="M3 3.9v8.2C3 13.1 5.2 14 8 14s5-.9 5-1.9V3.9M3 8c0 1 2.2 1.9 5 1.9S13 9 13 8" />
    </>
  ),
  "sign-out": <path d="M9.5 2.5h-6v11h6M6.5 8h7M11 5.2 13.8 8 11 10.8" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof shapes;

export const iconNames = Object.keys(shapes) as IconName[];

export interface IconProps extends Omit<SVGProps<SVGSVGElement>, "name"> {
  name: IconName;
  /** Pixels; 16 by default. */
  size?: number;
  /** Only for an icon without a word beside it; otherwise the icon is decoration. */
  label?: string;
}

export function Icon({ name, size = 16, label, ...rest }: IconProps) {
  const naming = label ? { role: "img", "aria-label": label } : { "aria-hidden": true };
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: named by aria-label, or hidden
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      focusable="false"
      {...naming}
      {...rest}
    >
      {shapes[name]}
    </svg>
  );
}
