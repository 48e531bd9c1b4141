-- Answers are only ever added or marked as undone, or renamed with their class (classes.sql). What
-- follows from them (images.label and images.disputed) is worked out again in the same transaction,
-- so that it is never out of step.

CREATE TABLE images (
    id       INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,      -- in the folder, with slashes
    draw     REAL NOT NULL,             -- a number in [0, 1) by chance: the order of random questions
    reserved INTEGER NOT NULL,          -- for the audit, by chance: the model never chooses it
    problem  TEXT,                      -- why it cannot be shown; NULL if it can
    label    TEXT,                      -- the class on which all who answered agree; NULL if none
    disputed INTEGER NOT NULL DEFAULT 0, -- people disagree about it
    twin     INTEGER REFERENCES images  -- the image of the same content that is asked; NULL: this
);
CREATE INDEX images_by_draw ON images (reserved, draw);
CREATE INDEX images_with_label ON images (label, reserved) WHERE label IS NOT NULL;
CREATE INDEX images_with_problem ON images (id) WHERE problem IS NOT NULL;
CREATE INDEX images_disputed ON images (id) WHERE disputed;
CREATE INDEX images_by_twin ON images (twin) WHERE twin IS NOT NULL;

CREATE TABLE answers (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    token   TEXT NOT NULL UNIQUE,       -- made by the client: an answer that is sent twice is one
    image   INTEGER NOT NULL REFERENCES images,
    person  TEXT NOT NULL,
    at      TEXT NOT NULL,              -- UTC, ISO 8601
    label   TEXT,                       -- NULL: skipped
    round   INTEGER NOT NULL,           -- of the model that asked; 0 before there was one
    reason  TEXT NOT NULL,              -- why it was asked
    decides INTEGER NOT NULL,           -- settles a dispute: overrules what others said before
    undone  TEXT                        -- when it was taken back
);
CREATE INDEX answers_by_image ON answers (image);
CREATE INDEX answers_by_person ON answers (person, id);

-- The answers that count: the last of each person, unless somebody decided after it.
CREATE VIEW standing AS
SELECT * FROM answers AS a
WHERE undone IS NULL AND NOT EXISTS (
    SELECT 1 FROM answers AS b
    WHERE b.image = a.image AND b.id > a.id AND b.undone IS NULL
      AND (b.person = a.person OR b.decides)
);

-- Who has which image before them. A lease that has run out counts for nothing.
CREATE TABLE leases (
    image  INTEGER PRIMARY KEY REFERENCES images,
    client TEXT NOT NULL,
    until  REAL NOT NULL,               -- seconds since 1970
    round  INTEGER NOT NULL,
    reason TEXT NOT NULL,
    place  INTEGER NOT NULL             -- in the client's order
);

-- What the model would ask next, best first; replaced as a whole after each fit.
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
    audited    INTEGER NOT NULL,        -- labels of the audit; 0 until it is made
    correct    INTEGER NOT NULL,        -- of these, predicted right by models without them
    low        REAL,                    -- interval of the accuracy, 95 %
    high       REAL,
    seconds    REAL NOT NULL,           -- of the fit
    accuracy   REAL                     -- estimated over all images; NULL without an audit
);
