"""`laneway roles …`"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli import connection, inputs
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines, visible
from laneway.domain.permissions import WITHOUT_OWNER

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.cli.connection import Backend
    from laneway.domain.access import Role, RoleGrant
    from laneway.domain.job_id import IdPrefix

app = group("Manage roles and who has them.")

Name = Annotated[str, typer.Argument(metavar="ROLE", help="The role's name.")]
Principal = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="The principal's name.")]
Permissions = Annotated[
    str, typer.Option(metavar="A,B", help="All its permissions, such as jobs:read,jobs:cancel.")
]


@app.command()
def ls(json: Json = False) -> None:
    """List roles with their permissions."""
    from laneway.operations import access as operations

    found = connection.items(operations.list_roles())
    if json:
        show_json_lines(found)
        return
    from laneway.cli import access_tables

    show(access_tables.roles(found))


@app.command()
def create(role: Name, permissions: Permissions, json: Json = False) -> None:
    """Create a role from any set of permissions."""
    from laneway.operations import access as operations

    made = connection.call(operations.create_role(role, inputs.names(permissions)))
    if json:
        show_json(made)
    else:
        note(f"role {role}: created")


@app.command("set")
def set_(role: Name, permissions: Permissions, json: Json = False) -> None:
    """Replace the permissions of a role, at once for every principal that has it."""
    from laneway.operations import access as operations

    changed = connection.call(operations.change_role(role, inputs.names(permissions)))
    if json:
        show_json(changed)
    else:
        note(f"role {role}: {', '.join(changed.permissions)}")


@app.command()
def delete(role: Name, json: Json = False) -> None:
    """Delete a role that no principal has."""
    from laneway.operations import access as operations

    connection.call(operations.delete_role(role))
    if json:
        show_json({"name": role, "deleted": True})
    else:
        note(f"role {role}: deleted")


@app.command()
def grants(
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only grants to this principal.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only grants of this role.")
    ] = None,
    json: Json = False,
) -> None:
    """List the roles of principals, and the jobs they cover."""
    from laneway.operations import access as operations

    async def verb(backend: Backend) -> tuple[list[RoleGrant], list[Role]]:
        found = await backend.items(operations.list_grants(principal=principal, role=role))
        return found, [] if json else await backend.items(operations.list_roles())

    found, roles = connection.run(verb)
    if json:
        show_json_lines(found)
    elif not found:
        note("no role is granted")
    else:
        from laneway.cli import access_tables

        show(access_tables.grants(found, roles))


@app.command()
def grant(
    principal: Principal,
    role: Name,
    scope: Annotated[
        str,
        typer.Option(metavar="SCOPE", help="The jobs it covers: own, workspace or all."),
    ],
    workspace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The workspace, with --scope workspace.")
    ] = None,
    lanes: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only in these lanes; all by default.")
    ] = None,
    max_priority: Annotated[
        str | None, typer.Option(metavar="N|usual", help="Highest priority; 100 by default.")
    ] = None,
    max_queued: Annotated[
        str | None,
        typer.Option(metavar="N|usual", help="Most jobs waiting at once; 100000 by default."),
    ] = None,
    max_queued_bytes: Annotated[
        str | None,
        typer.Option(metavar="N|usual", help="Most bytes waiting at once; 1 GiB by default."),
    ] = None,
    max_types: Annotated[
        str | None,
        typer.Option(metavar="N|usual", help="Most unpublished job types; 100 by default."),
    ] = None,
    json: Json = False,
) -> None:
    """Grant a role to a principal, or change the bounds of an existing grant."""
    from laneway.operations import access as operations

    asked = operations.grant_role(
        principal,
        role,
        scope,
        workspace,
        None if lanes is None else inputs.names(lanes),
        max_priority=inputs.bound(max_priority, "max_priority"),
        max_queued=inputs.bound(max_queued, "max_queued"),
        max_queued_bytes=inputs.bound(max_queued_bytes, "max_queued_bytes"),
        max_types=inputs.bound(max_types, "max_types"),
    )

    async def verb(backend: Backend) -> tuple[RoleGrant, list[Role]]:
        made = await backend.call(asked)
        return made, await backend.items(operations.list_roles()) if scope == "own" else []

    made, roles = connection.run(verb)
    _show(made, "has", json)
    given = [name for each in roles if each.name == role for name in each.permissions]
    if idle := ", ".join(name for name in given if name in WITHOUT_OWNER):
        note(f"the scope own covers nothing of {idle}: grant them for a workspace or all")


@app.command()
def revoke(
    grant: Annotated[
        Any,
        typer.Argument(
            metavar="GRANT",
            parser=inputs.record_id,
            help="The id of a grant, from `roles grants`, or its first digits.",
        ),
    ],
    json: Json = False,
) -> None:
    """Revoke a grant."""
    _show(connection.run(lambda backend: _revoke(backend, grant)), "no longer has", json)


async def _revoke(backend: Backend, given: UUID | IdPrefix) -> RoleGrant:
    """Revoke a grant and return what it was."""
    from laneway.cli.record_ids import only_record
    from laneway.operations import access as operations

    found = only_record(given, await backend.items(operations.list_grants()), "grant")
    await backend.call(operations.revoke_grant(found.id))
    return found


def _show(grant: RoleGrant, verb: str, json: bool) -> None:
    if json:
        show_json(grant)
        return
    where = f"in the workspace {grant.workspace}" if grant.workspace else f"for {grant.scope} jobs"
    lanes = f" of {', '.join(grant.lanes)}" if grant.lanes else ""
    text = f"principal {grant.principal}: {verb} the role {grant.role} {where}{lanes}"
    set_bounds = {name: value for name, value in asdict(grant.bounds).items() if value is not None}
    bounds = "".join(f", {name} {value}" for name, value in set_bounds.items())
    note(visible(text + bounds))
