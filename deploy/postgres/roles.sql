-- The roles of a database that stepacc and Dagster work in: each may do its part, and nothing else.
-- Run it by the owner of the database who may create roles, before `stepacc db upgrade`; again does no harm:
--   psql --set ON_ERROR_STOP=1 --single-transaction --file roles.sql "$ADMIN_URL"
--
--   stepacc_owner    owns the schema `stepacc`, and with it the migrations; nothing else has to be done by it
--   stepacc_writer   imports, collects, ingests, scores, annotates and erases; can neither create, alter nor drop
--   stepacc_reader   reads scores and all else in `stepacc`
--   stepacc_traces   reads the trace store of somebody else, once that one grants it
--   stepacc_dagster  owns the schema `dagster`, where Dagster keeps its runs

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY[
        'stepacc_owner', 'stepacc_writer', 'stepacc_reader', 'stepacc_traces', 'stepacc_dagster'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
    -- All of this everybody may do in a new database; where somebody took it away, these still may. Rows are written
    -- by way of temporary tables.
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO stepacc_writer', current_database());
    EXECUTE format(
        'GRANT CONNECT ON DATABASE %I TO stepacc_owner, stepacc_writer, stepacc_reader, stepacc_traces, stepacc_dagster',
        current_database()
    );
END $$;

CREATE SCHEMA IF NOT EXISTS stepacc AUTHORIZATION stepacc_owner;
CREATE SCHEMA IF NOT EXISTS dagster AUTHORIZATION stepacc_dagster;

GRANT USAGE ON SCHEMA stepacc TO stepacc_writer, stepacc_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stepacc TO stepacc_writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA stepacc TO stepacc_writer;
GRANT SELECT ON ALL TABLES IN SCHEMA stepacc TO stepacc_reader;

-- The same for what later migrations create.
ALTER DEFAULT PRIVILEGES FOR ROLE stepacc_owner IN SCHEMA stepacc
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO stepacc_writer;
ALTER DEFAULT PRIVILEGES FOR ROLE stepacc_owner IN SCHEMA stepacc
    GRANT USAGE ON SEQUENCES TO stepacc_writer;
ALTER DEFAULT PRIVILEGES FOR ROLE stepacc_owner IN SCHEMA stepacc
    GRANT SELECT ON TABLES TO stepacc_reader;
