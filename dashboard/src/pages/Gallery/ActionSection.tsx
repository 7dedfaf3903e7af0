import {
  Badge,
  Button,
  type ButtonVariant,
  Chip,
  CopyButton,
  IconButton,
  Menu,
  Tabs,
  TooltipText,
} from "../../components";
import { Sample, Section } from "./Section";

const variants: ButtonVariant[] = ["primary", "default", "quiet", "danger"];
const nothing = () => {};

export function ActionSection() {
  return (
    <Section title="Actions">
      {variants.map((variant) => (
        <Sample key={variant} name={`Button ${variant}`}>
          <Button variant={variant}>Retry job</Button>
          <Button variant={variant} icon="retry">
            Retry job
          </Button>
          <Button variant={variant} size="sm" icon="retry">
            Retry
          </Button>
          <Button variant={variant} isPending>
            Retry job
          </Button>
          <Button variant={variant} isDisabled>
            Retry job
          </Button>
        </Sample>
      ))}
      <Sample name="IconButton, Menu, CopyButton">
        <IconButton icon="search" label="Search" />
        <IconButton icon="trash" label="Delete" variant="default" />
        <IconButton icon="retry" label="Retry" size="sm" isPending />
        <Menu
          label="Actions of job 8f3a"
          items={[
            { id: "retry", label: "Retry", icon: "retry", keys: "r", onAction: nothing },
            { id: "clone", label: "Clone with edits", icon: "edit", onAction: nothing },
            { id: "curl", label: "Copy as curl", icon: "copy", onAction: nothing },
            "line",
            { id: "cancel", label: "Cancel", icon: "cross", danger: true, onAction: nothing },
            { id: "delete", label: "Delete", icon: "trash", isDisabled: true, onAction: nothing },
          ]}
        />
        <Menu
          label="Change priority"
          trigger={<Button iconEnd="chevron-down">Priority</Button>}
          items={[
            { id: "high", label: "High", detail: "Before everything else", onAction: nothing },
            { id: "normal", label: "Normal", detail: "In order of submission", onAction: nothing },
          ]}
        />
        <CopyButton text="8f3a" label="Copy id" />
        <CopyButton text="8f3a" label="Copy id" withWords />
        <TooltipText text="2026-11-18 09:41:07 UTC">3 minutes ago</TooltipText>
      </Sample>
      <Sample name="Badge, Chip">
        <Badge>12</Badge>
        <Badge tone="accent">operator</Badge>
        <Badge tone="warning" icon="pause">
          drained
        </Badge>
        <Badge tone="completed" icon="check">
          open
        </Badge>
        <Badge tone="failed">3</Badge>
        <Chip>nightly</Chip>
        <Chip name="lane" onRemove={nothing}>
          interactive
        </Chip>
        <Chip name="status" onRemove={nothing}>
          failed
        </Chip>
      </Sample>
      <Sample name="Tabs">
        <Tabs
          label="Job"
          items={[
            { href: "/gallery", label: "Explain", isCurrent: true },
            { href: "/gallery?tab=attempts", label: "Attempts", count: 3, isCurrent: false },
            { href: "/gallery?tab=payload", label: "Payload", isCurrent: false },
            { href: "/gallery?tab=log", label: "Log", count: "1.2k", isCurrent: false },
          ]}
        />
      </Sample>
    </Section>
  );
}
