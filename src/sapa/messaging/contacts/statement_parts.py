"""Queries that statements of other rooms contain; see `compose` in `src/sapa/db/sql.py`."""

# A deleted customer is not found.
THREAD = """thread AS (
    SELECT t.contact_id, t.last_inbound_at, t.sent_since AS sent_in_window, t.last_message_id, t.last_inbound_id,
           customers.id AS customer_id
      FROM contact_identities i
      JOIN message_threads t ON t.company_id = $1 AND t.contact_id = i.contact_id
       AND t.connection_id = coalesce(:connection_id, (SELECT id FROM connection))
      JOIN contacts c ON c.company_id = $1 AND c.id = i.contact_id
      LEFT JOIN customers ON customers.company_id = $1 AND customers.id = c.customer_id
     WHERE i.company_id = $1 AND i.kind = :identity_kind AND i.key = :identity_key)"""
"""The columns of `Thread` and the contact's customer, over the connection that is named or, without one, over that of
the part `connection`."""

RECIPIENT = """recipient AS (
    SELECT contact_id
      FROM contact_identities
     WHERE company_id = $1 AND kind = :identity_kind AND key = :identity_key AND contact_id = :message_contact_id)"""
"""The contact of a new message; nothing if the identity has gone to another contact."""
