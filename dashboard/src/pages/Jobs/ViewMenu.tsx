import { type FormEvent, useState } from "react";
import { useLocation, useSearch } from "wouter";
import {
  Button,
  Checkbox,
  Dialog,
  Menu,
  type MenuEntry,
  Switch,
  TextField,
} from "../../components";
import { copyText } from "../../components/clipboard";
import { type JobFilter, renderFilter } from "../../filter";
import { setPreferences, usePreferences } from "../../shell/preferences";
import { StoredValue, useStored } from "../../storage";
import { COLUMNS, USUAL_COLUMNS } from "./columns";
import styles from "./Jobs.module.css";

type SavedView = { name: string; search: string };

const VIEWS = new StoredValue<SavedView[]>("laneway.jobs.views", []);
const CHOSEN_COLUMNS = new StoredValue<string[]>("laneway.jobs.columns", USUAL_COLUMNS);

/** Saved views of this browser. A view is an address, so that a link shares it. */
export function SavedViews({ filter }: { filter: JobFilter }) {
  const views = useStored(VIEWS);
  const [isSaving, setSaving] = useState(false);
  const [name, setName] = useState("");
  const [, go] = useLocation();
  const search = useSearch();
  const here = views.find((view) => view.search === search);
  const save = (event: FormEvent) => {
    event.preventDefault();
    const wanted = name.trim();
    if (wanted === "") return;
    VIEWS.set([...views.filter((view) => view.name !== wanted), { name: wanted, search }]);
    setSaving(false);
  };
  const items: MenuEntry[] = [
    ...views.map((view) => ({
      id: `view ${view.name}`,
      label: view.name,
      ...(view === here && { icon: "check" as const }),
      onAction: () => go(`/jobs${view.search && `?${view.search}`}`),
    })),
    ...(views.length > 0 ? (["line"] as const) : []),
    {
      id: "save",
      label: "Save this view …",
      icon: "plus",
      onAction: () => {
        setName(here?.name ?? "");
        setSaving(true);
      },
    },
    ...(here
      ? [
          {
            id: "remove",
            label: `Remove ${here.name}`,
            icon: "trash" as const,
            onAction: () => VIEWS.set(views.filter((view) => view !== here)),
          },
        ]
      : []),
    {
      id: "link",
      label: "Copy link",
      icon: "link",
      onAction: () => void copyText(location.href),
    },
    {
      id: "text",
      label: "Copy filter as text",
      icon: "copy",
      onAction: () => void copyText(renderFilter(filter)),
    },
  ];
  return (
    <>
      <Menu
        label="Views"
        items={items}
        trigger={
          <Button iconEnd="chevron-down">
            <span className={styles.viewName}>{here?.name ?? "Views"}</span>
          </Button>
        }
      />
      <Dialog title="Save this view" size="sm" isOpen={isSaving} onClose={() => setSaving(false)}>
        <form className={styles.form} onSubmit={save}>
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            maxLength={60}
            hint="Kept in this browser. To share the view, copy its link."
          />
          <Button type="submit" variant="primary">
            Save
          </Button>
        </form>
      </Dialog>
    </>
  );
}

/** The columns of the table in this browser. */
export function useColumns() {
  const chosen = useStored(CHOSEN_COLUMNS);
  const columns = COLUMNS.filter(({ id }) => chosen.includes(id));
  return { columns, chosen, setChosen: (next: string[]) => CHOSEN_COLUMNS.set(next) };
}

type ColumnProps = { chosen: string[]; onChange: (chosen: string[]) => void };

export function ColumnButton({ chosen, onChange }: ColumnProps) {
  const [isOpen, setOpen] = useState(false);
  const { density } = usePreferences();
  return (
    <>
      <Button icon="settings" onPress={() => setOpen(true)}>
        Columns
      </Button>
      <Dialog
        title="Columns"
        size="sm"
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        footer={<Button onPress={() => onChange(USUAL_COLUMNS)}>Usual columns</Button>}
      >
        <div className={styles.form}>
          <div className={styles.columnChoice}>
            {COLUMNS.map(({ id, name }) => (
              <Checkbox
                key={id}
                isSelected={chosen.includes(id)}
                onChange={(isOn) =>
                  onChange(isOn ? [...chosen, id] : chosen.filter((each) => each !== id))
                }
              >
                {name}
              </Checkbox>
            ))}
          </div>
          <Switch
            isSelected={density === "dense"}
            onChange={(isDense) => setPreferences({ density: isDense ? "dense" : "comfortable" })}
          >
            Dense rows
          </Switch>
        </div>
      </Dialog>
    </>
  );
}
