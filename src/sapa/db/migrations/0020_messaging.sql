-- What answers to letters need, and a way to the messages that no channel has said anything of.

SET LOCAL lock_timeout = '5s';


-- Of a letter that came in: the ids of the conversation up to it, the oldest first.
ALTER TABLE messages ADD COLUMN thread text[];

-- Out there, and neither taken nor refused as far as anybody knows. None of its columns changes once a channel spoke,
-- so that later reports touch no index.
CREATE INDEX messages_unsettled_idx ON messages (created_at)
    WHERE direction = 'out' AND sent_at IS NULL AND failed_at IS NULL;

-- What the contact wrote last: an answer belongs to it.
ALTER TABLE message_threads ADD COLUMN last_inbound_id text COLLATE "C";
