-- People's notes on images, one row for each person and image.
CREATE TABLE notes (
    image   INTEGER NOT NULL REFERENCES images,
    person  TEXT NOT NULL,
    at      TEXT NOT NULL,              -- UTC, ISO 8601
    flagged INTEGER NOT NULL,
    note    TEXT NOT NULL,              -- empty if there is only a flag
    PRIMARY KEY (image, person)
);
