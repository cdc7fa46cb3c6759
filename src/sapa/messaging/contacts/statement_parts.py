"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

# A deleted customer is not found. Each row is looked up by its whole key: as a join, all threads of the connection
# would be read while the planner knows nothing of a young table.
THREAD = """identity AS (
    SELECT contact_id FROM contact_identities WHERE company_id = $1 AND kind = :identity_kind AND key = :identity_key),
thread AS (
    SELECT t.contact_id, t.last_inbound_at, t.sent_since AS sent_in_window, t.last_message_id, t.last_inbound_id,
           (SELECT id FROM customers
             WHERE company_id = $1
               AND id = (SELECT customer_id FROM contacts WHERE company_id = $1 AND id = t.contact_id)) AS customer_id
      FROM message_threads t
     WHERE t.company_id = $1 AND t.connection_id = coalesce(:connection_id, (SELECT id FROM connection))
       AND t.contact_id = (SELECT contact_id FROM identity))"""
"""The columns of `Thread` and the contact's customer, over the connection that is named or, without one, over that of
the part `connection`."""

RECIPIENT = """recipient AS (
    SELECT contact_id
      FROM contact_identities
     WHERE company_id = $1 AND kind = :identity_kind AND key = :identity_key AND contact_id = :message_contact_id)"""
"""The contact of a new message; nothing if the identity has gone to another contact."""
