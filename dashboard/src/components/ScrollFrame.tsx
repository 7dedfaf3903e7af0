import type { ReactNode } from "react";

export interface ScrollFrameProps {
  /** What is inside, for screen readers. */
  label: string;
  className?: string | undefined;
  maxHeight?: string | undefined;
  children: ReactNode;
}

/** A part of the page that scrolls: named, and in the tab order so that the keyboard scrolls it too. */
export function ScrollFrame({ label, className, maxHeight, children }: ScrollFrameProps) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys scroll only what has the focus
      tabIndex={0}
      className={className}
      style={maxHeight ? { maxHeight } : undefined}
    >
      {children}
    </section>
  );
}
