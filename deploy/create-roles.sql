-- Run once by the PostgreSQL image of the compose files, as the superuser: the roles of the relay and of Temporal, which are no superusers.
\getenv relay_password RELAY_DATABASE_PASSWORD
\getenv temporal_password TEMPORAL_DATABASE_PASSWORD

create role relay login password :'relay_password';
create database relay owner relay;
revoke connect on database relay from public;

-- Temporal creates its own two databases, unless it uses that of the relay.
\if :{?temporal_password}
create role temporal login createdb password :'temporal_password';
\endif
