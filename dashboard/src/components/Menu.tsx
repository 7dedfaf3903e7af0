import type { ReactElement } from "react";
import {
  Menu as AriaMenu,
  MenuItem as AriaMenuItem,
  MenuTrigger,
} from "react-aria-components/Menu";
import { Popover } from "react-aria-components/Popover";
import { Separator } from "react-aria-components/Separator";
import { IconButton } from "./Button";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import { Kbd } from "./Kbd";
import styles from "./Popover.module.css";

export interface MenuAction {
  id: string;
  label: string;
  /** A second, smaller line. */
  detail?: string;
  icon?: IconName;
  /** Shown at the right; the page handles the key itself. */
  keys?: string;
  danger?: boolean;
  isDisabled?: boolean;
  onAction: () => void;
}

export type MenuEntry = MenuAction | "line";

export interface MenuProps {
  /** The name of the menu: "Actions of job 8f3a". */
  label: string;
  items: readonly MenuEntry[];
  /** The control that opens it; a "⋯" button by default. */
  trigger?: ReactElement;
  size?: "sm" | "md";
  isOpen?: boolean;
  onOpenChange?: (isOpen: boolean) => void;
}

export function Menu({ label, items, trigger, size = "sm", isOpen, onOpenChange }: MenuProps) {
  const control = {
    ...(isOpen === undefined ? {} : { isOpen }),
    ...(onOpenChange ? { onOpenChange } : {}),
  };
  return (
    <MenuTrigger {...control}>
      {trigger ?? <IconButton icon="dots" label={label} size={size} />}
      <Popover className={styles.popover ?? ""} placement="bottom end" offset={4}>
        <AriaMenu className={styles.list ?? ""} aria-label={label}>
          {items.map((item, at) =>
            item === "line" ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
              <Separator key={`line${at}`} className={styles.line ?? ""} />
            ) : (
              <AriaMenuItem
                key={item.id}
                id={item.id}
                textValue={item.label}
                className={cx(styles.item, item.danger && styles.danger)}
                isDisabled={item.isDisabled ?? false}
                onAction={item.onAction}
              >
                {item.icon && <Icon name={item.icon} />}
                <span className={styles.words}>
                  {item.label}
                  {item.detail && <span className={styles.detail}>{item.detail}</span>}
                </span>
                {item.keys && <Kbd keys={item.keys} />}
              </AriaMenuItem>
            ),
          )}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
