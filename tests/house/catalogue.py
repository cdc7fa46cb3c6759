"""A database's catalogue as lines of text, one for each fact, so that two can be compared."""

from sapa.db.pool import Connection

# The history table belongs to the migrations; days of events are made by the worker as time goes by.
_OURS = """
    n.nspname = 'public' AND c.relname <> 'schema_migrations'
    AND c.relname !~ '^(events|webhook_attempts|api_requests|api_calls)_\\d{6}'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                                              AND d.deptype = 'e')"""

_TABLES = """
    SELECT format('table %s: kind %s, persistence %s, options %s, partition %s %s', c.relname, c.relkind,
                  c.relpersistence, c.reloptions, pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid))
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE OURS AND c.relkind <> 'i' AND c.relkind <> 'I'"""

_COLUMNS = """
    SELECT format('column %s.%s (%s): %s %s, default %s, collation %s, identity %s, generated %s', c.relname,
                  a.attname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum),
                  format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END,
                  pg_get_expr(d.adbin, d.adrelid), l.collname, a.attidentity, a.attgenerated)
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      LEFT JOIN pg_collation l ON l.oid = a.attcollation
     WHERE OURS AND c.relkind IN ('r', 'p', 'v', 'm')"""

_CONSTRAINTS = """
    SELECT format('constraint %s on %s: %s', k.conname, c.relname, pg_get_constraintdef(k.oid))
      FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE OURS"""

_INDEXES = """
    SELECT format('index: %s', pg_get_indexdef(i.indexrelid))
      FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE OURS"""

_TRIGGERS = """
    SELECT format('trigger: %s', pg_get_triggerdef(t.oid))
      FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE OURS AND NOT t.tgisinternal"""

# Whom the product's role may ask is grants.sql's to say: the owner's and everybody's rights are the schema's.
_FUNCTIONS = """
    SELECT format('function: %s, for everybody: %s', pg_get_functiondef(p.oid),
                  has_function_privilege('public', p.oid, 'EXECUTE'))
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = 'public'
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"""

_EXTENSIONS = "SELECT format('extension %s', extname) FROM pg_extension"

_STATEMENTS = [
    statement.replace("OURS", _OURS)
    for statement in (_TABLES, _COLUMNS, _CONSTRAINTS, _INDEXES, _TRIGGERS, _FUNCTIONS, _EXTENSIONS)
]


async def read_catalogue(db: Connection) -> set[str]:
    return {row[0] for statement in _STATEMENTS for row in await db.fetch(statement)}


async def differences(db: Connection, other: Connection) -> list[str]:
    """What only one of two databases has."""
    one, two = await read_catalogue(db), await read_catalogue(other)
    return [f"only in the first: {fact}" for fact in sorted(one - two)] + [
        f"only in the second: {fact}" for fact in sorted(two - one)
    ]
