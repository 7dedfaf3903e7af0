"""The rows of the crash suite, one module each."""

from __future__ import annotations

from tests.crash.play import Row
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
)

ROWS = {
    "C1": Row("kill -9 of a random worker, once a second", c01_kill.play, c01_kill.look),
    "C2": Row("directed zombie: stop, lapse, re-claim, go on", c02_zombie.play, c02_zombie.look),
    "C3": Row("connections terminated, ten a second", c03_connections.play, c03_connections.look),
    "C4": Row(
        "PostgreSQL stopped at once and started, under load",
        c04_restart.play,
        c04_restart.look,
        is_durable=True,
    ),
    "C6": Row("leaders lost while schedules come round", c06_schedule.play, c06_schedule.look),
    "C7": Row("all through pgbouncer, transaction mode", c07_pooler.play, c07_pooler.look),
    "C11": Row("poison: exit, crash, kill, memory, GIL", c11_poison.play, c11_poison.look),
    "C12": Row("SIGTERM with jobs in hand", c12_drain.play, c12_drain.look),
    "C15": Row("heartbeats without progress", c15_standstill.play, c15_standstill.look),
    "C16": Row("approvals, analyses and deciders killed", c16_approval.play, c16_approval.look),
    "C17": Row("killed with limits and keys in hand", c17_limits.play, c17_limits.look),
    "C18": Row(
        "killed before and after the commit of one's own transaction",
        c18_own_transaction.play,
        c18_own_transaction.look,
    ),
    "C19": Row("servers killed with streams open", c19_streams.play, c19_streams.look),
    "C20": Row("PostgreSQL restarted under servers", c20_server.play, c20_server.look),
    "C21": Row("replicas killed under remote workers", c21_replicas.play, c21_replicas.look),
    "C22": Row(
        "PostgreSQL restarted under remote workers",
        c22_remote_restart.play,
        c22_remote_restart.look,
    ),
    "C23": Row(
        "upgraded under load, beside workers of landed versions",
        c23_upgrade.play,
        c23_upgrade.look,
        spoils_itself=True,
    ),
    "C24": Row("workers killed after their handlers forked", c24_forks.play, c24_forks.look),
    "C26": Row("few jobs beside many under one limit", c26_fair_limits.play, c26_fair_limits.look),
    "C27": Row(
        "silent in the middle of a change, with locks in hand",
        c27_silent_holder.play,
        c27_silent_holder.look,
    ),
    "C28": Row(
        "all connections silent for a while",
        c28_silent_network.play,
        c28_silent_network.look,
    ),
    "C29": Row(
        "leaders frozen and PostgreSQL away while schedules come round",
        c29_frozen_leader.play,
        c29_frozen_leader.look,
    ),
    "C30": Row(
        "streams open through a dump and restore, and a restart",
        c30_restored_log.play,
        c30_restored_log.look,
        keeps_history=False,
    ),
    "C25": Row("jobs that take their process along", c25_culprit.play, c25_culprit.look),
}
