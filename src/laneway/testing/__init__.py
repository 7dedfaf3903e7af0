"""Tools for tests: inject faults, record what happens, and check it.

`faults`   kills, stops and continues real processes
`proxy`    cuts, swallows or delays the connection between a program and its database
`history`  the events of a test run, recorded by the test and not by Laneway
`checker`  the laws of every history, as pure functions that yield violations
"""
