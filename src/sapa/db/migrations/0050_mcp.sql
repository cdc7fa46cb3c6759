-- A key says whether AI agents may use it with MCP.
-- runs with code since: 0025

SET LOCAL lock_timeout = '5s';

ALTER TABLE api_keys ADD COLUMN allows_mcp boolean NOT NULL DEFAULT true;
