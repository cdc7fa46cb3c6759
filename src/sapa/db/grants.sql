-- What the product's role may do, table by table; nothing that is not written here.
-- Append-only tables have neither UPDATE nor DELETE, and partitions are reached through their parents only.

REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {app};
GRANT USAGE ON SCHEMA public TO {app};

GRANT SELECT ON schema_migrations TO {app};

GRANT SELECT, INSERT, UPDATE ON organisations TO {app};
GRANT SELECT, INSERT, UPDATE ON companies TO {app};
GRANT SELECT, INSERT, UPDATE ON api_keys TO {app};
GRANT SELECT, INSERT, DELETE ON developer_tokens TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON leases TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON secret_rotations TO {app};
GRANT SELECT, INSERT ON backup_runs TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON rate_windows TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_records TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON counter_cells TO {app};
GRANT SELECT, INSERT, DELETE ON counter_deltas TO {app};

GRANT SELECT, INSERT ON events TO {app};
GRANT EXECUTE ON FUNCTION keep_day_partitions(text, integer, integer) TO {app};
GRANT EXECUTE ON FUNCTION keep_month_partitions(text, integer, integer) TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON customers TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON products TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON variants TO {app};
GRANT SELECT, INSERT, UPDATE ON order_numbers TO {app};
GRANT SELECT, INSERT, UPDATE ON orders TO {app};
GRANT EXECUTE ON FUNCTION purge_rows(text, timestamp with time zone, integer) TO {app};
GRANT EXECUTE ON FUNCTION complete_line_items(json, text) TO {app};
GRANT SELECT, INSERT, DELETE ON order_transactions TO {app};
GRANT SELECT, INSERT ON order_history TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON draft_orders TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON customer_copies TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON imports TO {app};
GRANT SELECT, INSERT, DELETE ON import_chunks TO {app};
GRANT SELECT, INSERT, DELETE ON import_keys TO {app};
GRANT SELECT, INSERT, DELETE ON import_errors TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON import_mappings TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_endpoints TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_lanes TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_queue TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_newest TO {app};
GRANT SELECT, INSERT ON webhook_attempts TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON notices TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON timeline_entries TO {app};

GRANT SELECT, INSERT, UPDATE ON loyalty_settings TO {app};
GRANT SELECT, INSERT ON loyalty_tiers TO {app};
GRANT SELECT, INSERT, UPDATE ON loyalty_wallets TO {app};
GRANT SELECT, INSERT ON loyalty_entries TO {app};
GRANT SELECT, INSERT, UPDATE ON loyalty_lots TO {app};
GRANT SELECT, INSERT ON loyalty_lot_moves TO {app};
GRANT SELECT, INSERT, UPDATE ON loyalty_reservations TO {app};
GRANT SELECT, INSERT ON loyalty_holds TO {app};
GRANT SELECT, INSERT, UPDATE ON loyalty_order_positions TO {app};
GRANT SELECT, INSERT, UPDATE ON loyalty_checks TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON loyalty_reward_options TO {app};
GRANT SELECT, INSERT, UPDATE ON loyalty_redemptions TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_callbacks TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON carrier_connections TO {app};
GRANT SELECT, INSERT, DELETE ON carrier_calls TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_bookings TO {app};

GRANT SELECT, INSERT, UPDATE ON areas TO {app};
GRANT SELECT, INSERT, DELETE ON area_words TO {app};
GRANT SELECT, INSERT, DELETE ON area_spellings TO {app};
GRANT SELECT, INSERT, DELETE ON area_arrivals TO {app};
GRANT SELECT, INSERT ON area_datasets TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON coverage_cache TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON quote_cache TO {app};

GRANT SELECT, INSERT, UPDATE ON channel_connections TO {app};
GRANT SELECT, INSERT, UPDATE ON channel_paces TO {app};
GRANT SELECT, INSERT, UPDATE ON channel_statuses TO {app};
GRANT SELECT, INSERT, UPDATE ON channel_warnings TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON users TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON memberships TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sessions TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON known_browsers TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON saved_filters TO {app};
GRANT SELECT, INSERT, DELETE ON one_time_links TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sign_in_attempts TO {app};
GRANT SELECT, INSERT ON audit_entries TO {app};

GRANT SELECT, INSERT ON api_calls TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON widget_visitors TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON widget_sessions TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON widget_lines TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON widget_windows TO {app};

GRANT SELECT, INSERT, UPDATE ON contacts TO {app};
GRANT SELECT, INSERT, UPDATE ON contact_identities TO {app};
GRANT SELECT, INSERT, UPDATE ON message_threads TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON consents TO {app};
GRANT SELECT, INSERT, DELETE ON consent_records TO {app};
GRANT SELECT, INSERT, UPDATE ON consent_settings TO {app};
GRANT SELECT, INSERT ON unsubscribe_links TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON consent_confirmations TO {app};
GRANT SELECT, INSERT, UPDATE ON channel_lanes TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON channel_callbacks TO {app};
GRANT SELECT, INSERT, DELETE ON channel_events TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON deferred_messages TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON files TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON file_parts TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON file_thumbnails TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON channel_files TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON product_pictures TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON upload_windows TO {app};
GRANT SELECT, INSERT, UPDATE ON message_media TO {app};
GRANT SELECT, INSERT ON message_media_parts TO {app};
GRANT SELECT, INSERT, DELETE ON sandbox_outbox TO {app};
GRANT SELECT, INSERT, UPDATE ON sandbox_counts TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_templates TO {app};
GRANT SELECT, INSERT, DELETE ON sandbox_media TO {app};
GRANT SELECT, INSERT, UPDATE ON sandbox_channel_states TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_subscriptions TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_deliveries TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_people TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_paces TO {app};

GRANT SELECT, INSERT, UPDATE, DELETE ON store_locations TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON shipments TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON label_batches TO {app};
GRANT SELECT, INSERT, DELETE ON label_files TO {app};
GRANT SELECT, INSERT, UPDATE ON tracking_page_settings TO {app};
GRANT SELECT, INSERT, UPDATE ON notification_settings TO {app};
GRANT SELECT, INSERT, UPDATE ON shipment_notifications TO {app};
GRANT SELECT, INSERT, UPDATE ON shipment_bookings TO {app};
GRANT SELECT, INSERT ON shipment_events TO {app};
GRANT SELECT, INSERT, UPDATE ON return_numbers TO {app};
GRANT SELECT, INSERT ON settlements TO {app};
GRANT SELECT, INSERT ON settlement_lines TO {app};
GRANT SELECT, INSERT, UPDATE ON cod_differences TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON carrier_callbacks TO {app};

GRANT SELECT, INSERT, UPDATE ON messages TO {app};
GRANT SELECT, INSERT ON message_events TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON message_rates TO {app};
GRANT SELECT, INSERT, UPDATE ON message_costs TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON message_templates TO {app};
GRANT SELECT, INSERT, UPDATE ON api_requests TO {app};

GRANT SELECT, INSERT, DELETE ON support_samples TO {app};
GRANT SELECT, INSERT, UPDATE ON analytics_sums TO {app};
GRANT SELECT, INSERT, UPDATE ON analytics_tickets TO {app};

GRANT SELECT, INSERT, UPDATE ON support_settings TO {app};
GRANT SELECT, INSERT, UPDATE ON agents TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON ticket_labels TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON teams TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON saved_replies TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON ticket_views TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON macros TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON reply_drafts TO {app};
GRANT SELECT, INSERT, DELETE ON ticket_mentions TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON scheduled_replies TO {app};
GRANT SELECT, INSERT, UPDATE ON business_hours TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON sla_policies TO {app};
GRANT SELECT, INSERT, UPDATE ON ratings TO {app};
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_presences TO {app};
GRANT SELECT, INSERT, UPDATE ON tickets TO {app};
GRANT SELECT, INSERT ON ticket_events TO {app};
GRANT SELECT, INSERT, UPDATE ON ticket_notes TO {app};
