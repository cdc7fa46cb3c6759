"""What statements of other rooms read of cached areas: parts for `compose`, after a part `account` with an adapter."""

SUB_DISTRICTS = """sub_districts AS (
    SELECT parent, areas
      FROM coverage_cache
     WHERE company_id = $1 AND adapter = (SELECT adapter FROM account) AND level = 'sub-districts'
       AND parent = ANY(:districts::text[]) AND fetched_at > now() - make_interval(days => :max_age_days))"""
"""The sub-districts of some districts, as far as the carrier's lists are cached."""


def _build_area(name: str, level: str, id: str) -> str:
    """In any list that is cached, however old: an area keeps its name."""
    return f"""{name} AS (
    SELECT area->>'name' AS name, area->>'parent_id' AS parent_id
      FROM coverage_cache, json_array_elements(areas) AS area
     WHERE company_id = $1 AND adapter = (SELECT adapter FROM account) AND level = '{level}' AND area->>'id' = {id}
     LIMIT 1)"""


AREA_NAMES = [
    _build_area("sub_district", "sub-districts", ":sub_district"),
    _build_area("district", "districts", ":district"),
    _build_area("city", "cities", "(SELECT parent_id FROM district)"),
    _build_area("province", "provinces", "(SELECT parent_id FROM city)"),
]
"""A sub-district and the areas that it is in, as far as they are cached."""

NAMES = """ARRAY[(SELECT name FROM sub_district), (SELECT name FROM district), (SELECT name FROM city),
                 (SELECT name FROM province)] AS names"""
"""Their names, for the SELECT: null where they are not known."""
