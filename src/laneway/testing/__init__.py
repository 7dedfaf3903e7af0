"""Tools to break things on purpose, and to tell whether anything went wrong: for tests.

`faults`   kill, stop and continue real processes
`proxy`    stand between a program and its database, and cut, swallow or delay
`history`  what happened, written down by the test and not by Laneway
`checker`  what must hold of every history: laws as pure functions that answer violations
"""
