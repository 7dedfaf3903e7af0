-- Ends the leadership of this holder only; the epoch stays, the next holder raises it.
update laneway.leader set held_until = '-infinity' where holder = %(holder)s::uuid
