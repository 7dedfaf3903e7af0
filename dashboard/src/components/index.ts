import "./pressable";

export { Badge, type BadgeProps } from "./Badge";
export {
  Button,
  type ButtonProps,
  type ButtonVariant,
  IconButton,
  type IconButtonProps,
} from "./Button";
export { Card, type CardProps } from "./Card";
export { Checkbox, type CheckboxProps } from "./Checkbox";
export { Chip, type ChipProps } from "./Chip";
export { CodeBlock, type CodeBlockProps } from "./CodeBlock";
export { ComboBox, type ComboBoxProps, type Suggestion } from "./ComboBox";
export { ConfirmDialog, type ConfirmDialogProps } from "./ConfirmDialog";
export { CopyButton, type CopyButtonProps } from "./CopyButton";
export { cx } from "./cx";
export { Dialog, DialogActions, type DialogProps } from "./Dialog";
export { EmptyState, type EmptyStateProps } from "./EmptyState";
export { ErrorBoundary, type ErrorBoundaryProps } from "./ErrorBoundary";
export { Icon, type IconName, type IconProps, iconNames } from "./Icon";
export { JsonDiff, type JsonDiffProps } from "./JsonDiff";
export { JsonView, type JsonViewProps } from "./JsonView";
export { Kbd } from "./Kbd";
export { KeyValue, type KeyValueItem, type KeyValueProps } from "./KeyValue";
export { LinkText, type LinkTextProps } from "./LinkText";
export { type LogLine, LogView, type LogViewProps } from "./LogView";
export { Menu, type MenuAction, type MenuEntry, type MenuProps } from "./Menu";
export { Notice, type NoticeKind, type NoticeProps } from "./Notice";
export { NumberStepper, type NumberStepperProps } from "./NumberStepper";
export { PageHeader, type PageHeaderProps, TitleWithId } from "./PageHeader";
export { ProgressBar, type ProgressBarProps } from "./ProgressBar";
export { ReachContext, useReach } from "./reach";
export { ScrollFrame, type ScrollFrameProps } from "./ScrollFrame";
export { type Segment, Segments, type SegmentsProps } from "./Segments";
export { Select, type SelectOption, type SelectProps } from "./Select";
export {
  type Shortcut,
  type ShortcutGroup,
  ShortcutHelp,
} from "./ShortcutHelp";
export {
  LoadingCards,
  Skeleton,
  SkeletonCard,
  SkeletonLines,
  SkeletonRows,
} from "./Skeleton";
export { SlotBoxes, type SlotBoxesProps } from "./SlotBoxes";
export { Sparkline, type SparklineProps } from "./Sparkline";
export { Stat, type StatProps, StatRow } from "./Stat";
export { StateBar, type StateBarProps, UNFINISHED } from "./StateBar";
export { StatusBadge, type StatusBadgeProps } from "./StatusBadge";
export { Switch, type SwitchProps } from "./Switch";
export { BAR_STATES, countStates, stateWord, stateWords, urgentState } from "./states";
export { type StatusTone, statusLook, statusWords, type Tone } from "./status";
export {
  Cell,
  type CellProps,
  HeaderCell,
  type HeaderCellProps,
  Row,
  type RowProps,
  Table,
  TableBody,
  TableHead,
  type TableProps,
} from "./Table";
export { type TabItem, Tabs, type TabsProps } from "./Tabs";
export { TextArea, type TextAreaProps, TextField, type TextFieldProps } from "./TextField";
export {
  type ToastApi,
  type ToastKind,
  type ToastOptions,
  ToastProvider,
  useToast,
} from "./Toasts";
export { Tooltip, type TooltipProps, TooltipText } from "./Tooltip";
export { Traceback, type TracebackProps } from "./Traceback";
export { TypedField, type TypedFieldProps } from "./TypedField";
export { toneClass } from "./tones";
