-- The role whose rights statements have.
select current_user::text
