import type { ShortcutGroup } from "../components";
import type { Screen } from "../pages";

/** The keyboard map for people. */
export function shortcuts(screens: Screen[]): ShortcutGroup[] {
  return [
    {
      title: "Anywhere",
      shortcuts: [
        { keys: ["/"], label: "Find a job" },
        { keys: ["?"], label: "This help" },
        { keys: ["Esc"], label: "Close a dialog or menu" },
      ],
    },
    {
      title: "Go to",
      shortcuts: screens.flatMap(({ key, name }) =>
        key ? [{ keys: [`g ${key}`], label: name }] : [],
      ),
    },
    {
      title: "In lists",
      shortcuts: [
        { keys: ["j", "k"], label: "Next, previous row" },
        { keys: ["x"], label: "Select the row" },
        { keys: ["Enter"], label: "Open the row" },
        { keys: ["."], label: "Actions of the row" },
      ],
    },
    {
      title: "In approvals",
      shortcuts: [
        { keys: ["j", "k"], label: "Next, previous request" },
        { keys: ["a"], label: "Approve the request in focus" },
        { keys: ["r"], label: "Reject the request in focus" },
      ],
    },
  ];
}
