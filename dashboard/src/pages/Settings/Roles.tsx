import { useApiPages } from "../../api";
import {
  Badge,
  Card,
  Cell,
  HeaderCell,
  Row,
  SkeletonRows,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { MoreButton } from "../../shell/MoreButton";
import { NewRoleButton, RoleActions } from "./RoleDialog";
import styles from "./Settings.module.css";

/** Roles and their permissions. */
export function Roles() {
  const roles = useApiPages("/admin/roles");
  return (
    <Card
      flush
      title="Roles"
      subtitle="A role is a set of permissions. Seeded roles cannot be changed."
      actions={<NewRoleButton />}
    >
      <ErrorNotice of={roles} />
      {roles.isPending && <SkeletonRows />}
      {roles.items.length > 0 && (
        <Table label="Roles" bare>
          <TableHead>
            <HeaderCell>Role</HeaderCell>
            <HeaderCell>Permissions</HeaderCell>
            <HeaderCell hidden>Actions</HeaderCell>
          </TableHead>
          <TableBody>
            {roles.items.map((role) => (
              <Row key={role.name}>
                <Cell rowHeader label="Role">
                  {role.name} {role.is_seeded && <Badge>Seeded</Badge>}
                </Cell>
                <Cell label="Permissions" wide>
                  <span className={styles.words}>
                    {role.permissions.map((name) => (
                      <Badge key={name}>{name}</Badge>
                    ))}
                  </span>
                </Cell>
                <Cell control>{!role.is_seeded && <RoleActions role={role} />}</Cell>
              </Row>
            ))}
          </TableBody>
        </Table>
      )}
      <MoreButton of={roles} />
    </Card>
  );
}
