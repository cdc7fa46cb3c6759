SET LOCAL lock_timeout = '5s';

CREATE INDEX carrier_calls_created_idx ON carrier_calls (company_id, created_at);

CREATE INDEX sandbox_bookings_booked_idx ON sandbox_bookings (company_id, booked_at);

CREATE INDEX shipments_needing_action_idx ON shipments (company_id, created_at, id) WHERE needs_action;

CREATE INDEX shipments_cancel_at_idx ON shipments (cancel_due_at) WHERE cancel_due_at IS NOT NULL;

CREATE INDEX shipments_poll_at_idx ON shipments (poll_at) WHERE poll_at IS NOT NULL;

CREATE INDEX shipment_bookings_due_at_idx ON shipment_bookings (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX carrier_callbacks_turn_idx ON carrier_callbacks (company_id, due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX sandbox_callbacks_due_at_idx ON sandbox_callbacks (due_at, id);

ALTER TABLE carrier_connections ADD COLUMN earlier_hooks bytea[] NOT NULL DEFAULT '{}';

CREATE INDEX carrier_connections_earlier_idx ON carrier_connections USING gin (earlier_hooks);
