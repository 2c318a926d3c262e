-- Who logs in, after roles.sql: one user for each URL of a deployment. Passwords are set afterwards (\password in psql).
CREATE ROLE evals_migrator LOGIN IN ROLE stepacc_owner;   -- STEPACC_DATABASE_URL of `stepacc db upgrade`, and no other
CREATE ROLE evals_worker LOGIN IN ROLE stepacc_writer;    -- STEPACC_DATABASE_URL of all else
CREATE ROLE evals_viewer LOGIN IN ROLE stepacc_reader;    -- dashboards, `stepacc scores`
CREATE ROLE evals_traces LOGIN IN ROLE stepacc_traces;    -- the variable that `store_url_env` names
CREATE ROLE evals_dagster LOGIN IN ROLE stepacc_dagster;  -- STEPACC_DAGSTER_DATABASE_URL

-- What they create belongs to the role rather than to the user, so that the next user can go on with it.
ALTER ROLE evals_migrator SET role = 'stepacc_owner';
ALTER ROLE evals_dagster SET role = 'stepacc_dagster';
ALTER ROLE evals_dagster SET search_path = 'dagster';
