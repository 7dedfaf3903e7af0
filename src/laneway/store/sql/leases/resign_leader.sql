-- Ends the leadership of this holder only; the epoch stays, and the next holder increments it.
update laneway.leader set held_until = '-infinity' where holder = %(holder)s::uuid
