"""SQL that finds due work over all companies: in each company's own time, without visiting all of them.

A company's clock is never behind the real time. So work that is due by the real time is due for its company and found
in one index; only the few companies whose test clock was moved are searched one by one. When more is due than fits
into one batch, companies take turns: then each of them is searched.
"""

WORKER = "the worker looks for due work over all companies"
"""Why statements that find the next due work cross companies."""

# Not clock_timestamp(): an index search needs a time that stays the same during the statement.
NOW = "statement_timestamp()"
COMPANY_NOW = f"({NOW} + c.clock_offset)"
"""The time of the company whose row is `c` in the statement."""


def build_clock(ahead: str = "interval '0'") -> str:
    """The time of the company $1 as `clock.now`, and the time that is `ahead` of it as `clock.later`.

    For UPDATE: it takes no instant of its own, because each machine of a sharded database would take another one. The
    OFFSET keeps the planner from putting the clock into the UPDATE.
    """
    now = f"SELECT {NOW} + clock_offset AS now FROM companies WHERE company_id = $1"
    return f"(SELECT now, now + {ahead} AS later FROM ({now}) AS company_clock OFFSET 0) AS clock"


TEST_CLOCKS = f"(SELECT company_id, {NOW} + clock_offset AS now FROM companies WHERE environment = 'test') AS clock"
"""The time of each company that can set its clock back."""


def add_interval(instant: str, interval: str) -> str:
    """The sum of a column and an interval, which does not depend on a session's time zone.

    For UPDATE and ON CONFLICT: the machines of a sharded database compute nothing that depends on a session.
    """
    return f"(({instant} AT TIME ZONE 'UTC' + {interval}) AT TIME ZONE 'UTC')"


def build_due(table: str, key: str, column: str) -> str:
    """The longest due first, over all companies."""
    return f"""
    SELECT company_id, {key}
      FROM ((SELECT company_id, {key}, {column} AS due_at FROM {table}
              WHERE {column} <= {NOW}
              ORDER BY {column} LIMIT $1)
             UNION ALL
            (SELECT s.company_id, {key}, s.{column} - c.clock_offset AS due_at
               FROM companies c
               JOIN {table} s ON s.company_id = c.company_id
              WHERE c.clock_offset > interval '0' AND s.{column} > {NOW} AND s.{column} <= {COMPANY_NOW}
              ORDER BY due_at LIMIT $1)) AS due
     ORDER BY due_at
     LIMIT $1"""


def build_in_turn(table: str, key: str, column: str, now: str = COMPANY_NOW) -> str:
    """The first due of each company, then the second of each: no company waits for another's backlog.

    It goes from company to company, so it reads no more of a backlog than it takes. A sharded database cannot do
    that.
    """
    return f"""
    SELECT company_id, {key}
      FROM (SELECT c.company_id, due.*
              FROM companies c
             CROSS JOIN LATERAL (
                   SELECT {key}, t.{column} - c.clock_offset AS since,
                          row_number() OVER (ORDER BY t.{column}, {key}) AS turn
                     FROM {table} t
                    WHERE t.company_id = c.company_id AND t.{column} <= {now}
                    ORDER BY t.{column}, {key} LIMIT $1) AS due) AS due
     ORDER BY turn, since
     LIMIT $1"""


def build_in_turn_of_shards(table: str, key: str, column: str, now: str = COMPANY_NOW) -> str:
    """The same for a sharded database: each machine reads all that is due on it."""
    return f"""
    SELECT company_id, {key}
      FROM (SELECT t.company_id, {key}, t.{column} - c.clock_offset AS since,
                   row_number() OVER (PARTITION BY t.company_id ORDER BY t.{column}, {key}) AS turn
              FROM {table} t
              JOIN companies c ON c.company_id = t.company_id
             WHERE t.{column} <= {now}) AS due
     WHERE turn <= $1
     ORDER BY turn, since
     LIMIT $1"""


def build_next_due(table: str, column: str, condition: str = "TRUE") -> str:
    """The seconds until the first row is due, over all companies; zero if it is, NULL if none waits."""
    return f"""
    SELECT CASE WHEN min(due_at) <= {NOW} THEN 0.0 ELSE extract(epoch FROM min(due_at) - {NOW}) END::float8
      FROM ((SELECT min(t.{column}) AS due_at FROM {table} t WHERE t.{column} IS NOT NULL AND {condition})
             UNION ALL
            (SELECT min(t.{column} - c.clock_offset)
               FROM (SELECT company_id, {column} FROM {table} WHERE {column} IS NOT NULL AND {condition}) AS t
               JOIN companies c ON c.company_id = t.company_id
              WHERE c.clock_offset > interval '0')) AS due"""


def build_next_real_due(table: str, column: str, condition: str = "TRUE") -> str:
    """The same for work that waits for the real time, whatever the company's clock says."""
    return f"""
    SELECT CASE WHEN min({column}) <= {NOW} THEN 0.0 ELSE extract(epoch FROM min({column}) - {NOW}) END::float8
      FROM {table}
     WHERE {column} IS NOT NULL AND {condition}"""


def build_is_waiting(table: str, condition: str = "TRUE") -> str:
    """Zero seconds if there is a row at all."""
    return f"SELECT CASE WHEN EXISTS (SELECT 1 FROM {table} WHERE {condition} LIMIT 1) THEN 0.0::float8 END"


def build_take(table: str, key: str, column: str) -> str:
    """Postpones due work by $3 seconds, so that no other worker takes it meanwhile."""
    return f"""
    UPDATE {table} s SET {column} = clock.later
      FROM {build_clock("make_interval(secs => $3)")}
     WHERE s.company_id = $1 AND s.{key} = $2 AND s.{column} <= clock.now"""
