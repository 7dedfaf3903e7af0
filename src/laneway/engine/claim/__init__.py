"""Finds and claims work: one loop per lane.

lane_loop.py      claims one batch whenever there may be work and there is room
lane_routing.py   which handlers of this worker run in which lane
start_lines.py    log lines at start: the lane of each job type, and why
capacity.py       how many more jobs this process may start, and for how long none
poller.py, wakeups.py   polling and notifications
floors.py, floor_check.py                 skip dead index entries; find jobs skipped by mistake
call_limits.py    limits held for one call
"""
