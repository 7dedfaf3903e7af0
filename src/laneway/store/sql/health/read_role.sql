-- The role that statements run as.
select current_user::text
