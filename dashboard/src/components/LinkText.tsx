import type { AnchorHTMLAttributes, ReactNode } from "react";
import { Link } from "wouter";
import { cx } from "./cx";
import { Icon } from "./Icon";
import styles from "./LinkText.module.css";
import { useReach } from "./reach";

export interface LinkTextProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  /** A path of the dashboard, or a full address with `external`. */
  href: string;
  children: ReactNode;
  /** Looks like the text around it until hovered: for tables where every row has links. */
  quiet?: boolean;
  external?: boolean;
}

export function LinkText({ href, children, quiet, external, className, ...rest }: LinkTextProps) {
  const isReachable = useReach(href);
  const look = cx(styles.link, quiet && styles.quiet, className);
  if (external) {
    return (
      <a {...rest} href={href} className={look} target="_blank" rel="noopener noreferrer">
        {children}
        <Icon name="external" size={12} className={styles.mark} label="(new tab)" />
      </a>
    );
  }
  if (!isReachable) {
    return (
      <span title={rest.title} className={className}>
        {children}
      </span>
    );
  }
  return (
    <Link {...rest} href={href} className={look}>
      {children}
    </Link>
  );
}
