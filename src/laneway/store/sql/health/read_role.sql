-- The role that statements run as, and the database.
select current_user::text, current_database()::text
