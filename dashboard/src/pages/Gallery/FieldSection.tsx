import { useState } from "react";
import {
  Checkbox,
  ComboBox,
  NumberStepper,
  Select,
  Switch,
  TextArea,
  TextField,
} from "../../components";
import styles from "./Gallery.module.css";
import { Sample, Section } from "./Section";

export function FieldSection() {
  const [slots, setSlots] = useState(2);
  const [isOn, setOn] = useState(true);
  const [lane, setLane] = useState<string | null>("interactive");
  const [type, setType] = useState("");
  return (
    <Section title="Fields">
      <Sample name="Text">
        <div className={styles.columns}>
          <TextField label="Name" placeholder="nightly" hint="Lower case letters and dashes." />
          <TextField label="Token" isOptional mono defaultValue="lw_9f2c…" />
          <TextField label="Cron" defaultValue="61 * * * *" error="Minute must be at most 59" />
          <TextField label="Locked" defaultValue="system" isDisabled />
          <TextArea label="Reason" placeholder="Why is it rejected?" rows={3} />
          <TextArea label="Payload" mono rows={3} defaultValue={'{\n  "pages": 10\n}'} />
        </div>
      </Sample>
      <Sample name="Choices">
        <div className={styles.columns}>
          <NumberStepper
            label="Slots"
            value={slots}
            onChange={setSlots}
            minValue={0}
            maxValue={10000}
            hint={slots === 2 ? "0 stops the lane." : `2 → ${slots} slots, within 2 s`}
          />
          <NumberStepper
            label="Poll interval"
            value={250}
            onChange={() => {}}
            unit="ms"
            step={50}
          />
          <Select
            label="Lane"
            value={lane}
            onChange={setLane}
            options={[
              { id: "interactive", label: "interactive", detail: "2 slots" },
              { id: "maintenance", label: "maintenance", detail: "1 slot" },
              { id: "default", label: "default", detail: "no limit" },
            ]}
          />
          <Select label="Role" value={null} onChange={() => {}} options={[]} isDisabled />
          <ComboBox
            label="Job type"
            value={type}
            onChange={setType}
            placeholder="ingestion"
            suggestions={[
              { value: "ingestion", detail: "interactive" },
              { value: "ingest_image", detail: "interactive" },
              { value: "projection", detail: "maintenance" },
            ]}
            hint="Any name is allowed."
          />
        </div>
      </Sample>
      <Sample name="Switch, Checkbox">
        <Switch isSelected={isOn} onChange={setOn}>
          Enabled
        </Switch>
        <Switch isSelected={false} onChange={() => {}} hint="Jobs that run may finish.">
          Drained
        </Switch>
        <Switch isSelected isDisabled onChange={() => {}}>
          Disabled
        </Switch>
        <Checkbox isSelected={isOn} onChange={setOn}>
          Selected
        </Checkbox>
        <Checkbox isSelected={false} isIndeterminate onChange={() => {}}>
          Some
        </Checkbox>
        <Checkbox isSelected={false} isDisabled onChange={() => {}}>
          Disabled
        </Checkbox>
      </Sample>
    </Section>
  );
}
