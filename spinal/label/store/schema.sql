-- Answers are only added, marked as undone, or renamed with their class (classes.sql). The columns
-- derived from them (images.label, images.disputed and images.people) are updated in the same
-- transaction, so that they always agree.

CREATE TABLE images (
    id       INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,      -- in the folder, with slashes
    draw     REAL NOT NULL,             -- a random number in [0, 1): the order of random questions
    reserved INTEGER NOT NULL,          -- for the audit, at random: the model never chooses it
    problem  TEXT,                      -- why it cannot be shown; NULL if it can
    label    TEXT,                      -- the class that all answers agree on; NULL if none
    disputed INTEGER NOT NULL DEFAULT 0, -- people disagree about it
    twin     INTEGER REFERENCES images  -- the image with the same content that is asked; NULL: this one
);
CREATE INDEX images_by_draw ON images (reserved, draw);
CREATE INDEX images_with_label ON images (label, reserved) WHERE label IS NOT NULL;
CREATE INDEX images_with_problem ON images (id) WHERE problem IS NOT NULL;
CREATE INDEX images_disputed ON images (id) WHERE disputed;
CREATE INDEX images_by_twin ON images (twin) WHERE twin IS NOT NULL;

CREATE TABLE answers (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    token   TEXT NOT NULL UNIQUE,       -- made by the client: an answer sent twice is stored once
    image   INTEGER NOT NULL REFERENCES images,
    person  TEXT NOT NULL,
    at      TEXT NOT NULL,              -- UTC, ISO 8601
    label   TEXT,                       -- NULL: skipped
    round   INTEGER NOT NULL,           -- of the model that asked; 0 before the first
    reason  TEXT NOT NULL,              -- why it was asked
    decides INTEGER NOT NULL,           -- settles a dispute: overrules earlier answers of others
    undone  TEXT                        -- when it was undone
);
CREATE INDEX answers_by_image ON answers (image);
CREATE INDEX answers_by_person ON answers (person, id);

-- The answers that count: each person's last one, unless somebody settled a dispute after it.
CREATE VIEW standing AS
SELECT * FROM answers AS a
WHERE undone IS NULL AND NOT EXISTS (
    SELECT 1 FROM answers AS b
    WHERE b.image = a.image AND b.id > a.id AND b.undone IS NULL
      AND (b.person = a.person OR b.decides)
);

-- Which client shows which image. An expired lease is ignored.
CREATE TABLE leases (
    image  INTEGER PRIMARY KEY REFERENCES images,
    client TEXT NOT NULL,
    until  REAL NOT NULL,               -- seconds since 1970
    round  INTEGER NOT NULL,
    reason TEXT NOT NULL,
    place  INTEGER NOT NULL             -- in the client's order
);

-- The model's next questions, best first; replaced as a whole after each fit.
CREATE TABLE queue (
    place  INTEGER PRIMARY KEY,
    image  INTEGER NOT NULL UNIQUE REFERENCES images,
    reason TEXT NOT NULL,
    round  INTEGER NOT NULL
);

CREATE TABLE rounds (
    round      INTEGER PRIMARY KEY,
    at         TEXT NOT NULL,
    trained_on INTEGER NOT NULL,        -- labels
    audited    INTEGER NOT NULL,        -- labels of the audit; 0 until it has run
    correct    INTEGER NOT NULL,        -- of these, predicted right by models not trained on them
    low        REAL,                    -- 95 % interval of the accuracy
    high       REAL,
    seconds    REAL NOT NULL,           -- that the fit took
    accuracy   REAL                     -- estimated over all images; NULL without an audit
);
