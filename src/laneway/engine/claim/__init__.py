"""Finds and claims work: one loop per lane.

lane_loop.py      claims one batch whenever there may be work and there is room
lane_routing.py   which handlers of this worker run in which lane
capacity.py       how many more jobs this process may start
poller.py, wakeups.py, peer_wakeups.py   when to look
floors.py, stray_look.py                 where live rows begin, and the look below
call_limits.py    limits that are held for one call
fullness.py       since when a lane has found no room here
"""
