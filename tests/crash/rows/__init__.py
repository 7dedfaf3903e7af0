"""The rows of the crash suite, one module each."""

from __future__ import annotations

from tests.crash.row import Row
from tests.crash.rows import (
    c01_kill,
    c02_zombie,
    c03_connections,
    c04_restart,
    c06_schedule,
    c07_pooler,
    c11_poison,
    c12_drain,
    c15_standstill,
    c16_approval,
    c17_limits,
    c18_own_transaction,
    c19_streams,
    c20_server,
    c21_replicas,
    c22_remote_restart,
    c23_upgrade,
    c24_forks,
    c25_culprit,
    c26_fair_limits,
    c27_silent_holder,
    c28_silent_network,
    c29_frozen_leader,
    c30_restored_log,
    c31_clock_jump,
    c32_flows,
    c33_waits,
)

ROWS = {
    "C1": Row("kill -9 of a random worker, once a second", c01_kill.inject, c01_kill.check),
    "C2": Row("directed zombie: stop, lapse, re-claim, go on", c02_zombie.inject, c02_zombie.check),
    "C3": Row(
        "connections terminated, ten a second", c03_connections.inject, c03_connections.check
    ),
    "C4": Row(
        "PostgreSQL stopped at once and started, under load",
        c04_restart.inject,
        c04_restart.check,
        is_durable=True,
    ),
    "C6": Row("leaders lost while schedules come round", c06_schedule.inject, c06_schedule.check),
    "C7": Row("all through pgbouncer, transaction mode", c07_pooler.inject, c07_pooler.check),
    "C11": Row("poison: exit, crash, kill, memory, GIL", c11_poison.inject, c11_poison.check),
    "C12": Row("SIGTERM with jobs in hand", c12_drain.inject, c12_drain.check),
    "C15": Row("heartbeats without progress", c15_standstill.inject, c15_standstill.check),
    "C16": Row("approvals, analyses and deciders killed", c16_approval.inject, c16_approval.check),
    "C17": Row("killed with limits and keys in hand", c17_limits.inject, c17_limits.check),
    "C18": Row(
        "killed before and after the commit of the application's transaction",
        c18_own_transaction.inject,
        c18_own_transaction.check,
    ),
    "C19": Row("servers killed with streams open", c19_streams.inject, c19_streams.check),
    "C20": Row("PostgreSQL restarted under servers", c20_server.inject, c20_server.check),
    "C21": Row("replicas killed under remote workers", c21_replicas.inject, c21_replicas.check),
    "C22": Row(
        "PostgreSQL restarted under remote workers",
        c22_remote_restart.inject,
        c22_remote_restart.check,
    ),
    "C23": Row(
        "upgraded under load, beside workers of landed versions",
        c23_upgrade.inject,
        c23_upgrade.check,
        applies_mutant_itself=True,
    ),
    "C24": Row("workers killed after their handlers forked", c24_forks.inject, c24_forks.check),
    "C26": Row(
        "few jobs beside many under one limit", c26_fair_limits.inject, c26_fair_limits.check
    ),
    "C27": Row(
        "silent in the middle of a change, with locks in hand",
        c27_silent_holder.inject,
        c27_silent_holder.check,
    ),
    "C28": Row(
        "all connections silent for a while",
        c28_silent_network.inject,
        c28_silent_network.check,
    ),
    "C29": Row(
        "leaders frozen and PostgreSQL away while schedules come round",
        c29_frozen_leader.inject,
        c29_frozen_leader.check,
    ),
    "C30": Row(
        "streams open through a dump and restore, and a restart",
        c30_restored_log.inject,
        c30_restored_log.check,
        keeps_history=False,
    ),
    "C31": Row(
        "the database's clock jumps by a day",
        c31_clock_jump.inject,
        c31_clock_jump.check,
        keeps_history=False,
    ),
    "C32": Row(
        "flows: workers, operators and PostgreSQL killed",
        c32_flows.inject,
        c32_flows.check,
        is_durable=True,
    ),
    "C33": Row(
        "sub-jobs, sleeps and events: workers, senders and PostgreSQL killed",
        c33_waits.inject,
        c33_waits.check,
        is_durable=True,
    ),
    "C25": Row("jobs that take their process along", c25_culprit.inject, c25_culprit.check),
}
