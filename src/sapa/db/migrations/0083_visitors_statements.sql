-- What visitors of the web chat answered to the form before the chat: their name, and an email address or phone number.
-- runs with code since: 0025

SET LOCAL lock_timeout = '1s';

ALTER TABLE widget_visitors
    ADD COLUMN stated_name text,
    ADD COLUMN stated_contact text;
