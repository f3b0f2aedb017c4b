-- The roles of a vault in production. Run once per cluster, as a superuser, before the first `nd7-vault migrate`:
--
--   psql -v owner_password=… -v service_password=… -f roles.sql
--   createdb --owner nd7_owner nd7
--
-- nd7_app and nd7_keeper belong to nobody who logs in; see README.md.
create role nd7_app nologin;
create role nd7_keeper nologin;

-- Migrates: owns the tables, hands functions over to nd7_keeper. Used by `nd7-vault migrate` only (ND7_DATABASE_OWNER_URL).
create role nd7_owner login password :'owner_password';
grant nd7_keeper to nd7_owner;

-- Serves: may act as nd7_app, and as nothing else (ND7_DATABASE_URL).
create role nd7_service login noinherit password :'service_password';
grant nd7_app to nd7_service;
