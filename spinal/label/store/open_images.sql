-- Images that may be asked, in the order of random questions, so that queries skip labelled ones.
CREATE INDEX IF NOT EXISTS images_open ON images (reserved, draw)
WHERE label IS NULL AND NOT disputed AND problem IS NULL AND twin IS NULL;
