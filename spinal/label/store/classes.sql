-- The classes, in the order of the page.
CREATE TABLE classes (
    name  TEXT PRIMARY KEY,
    place INTEGER NOT NULL,
    key   TEXT                          -- chosen by a person; NULL: derived from the name
);

-- Changes of the classes; the last one can be undone, then the one before it.
CREATE TABLE class_changes (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     TEXT NOT NULL,
    person TEXT NOT NULL,
    kind   TEXT NOT NULL,               -- add, rename, merge, remove, key, colour
    name   TEXT NOT NULL,
    target TEXT,                        -- the new name, the class merged into, or the new key or colour
    place  INTEGER,                     -- of a removed or merged class
    key    TEXT,                        -- before the change
    undone TEXT
);
-- Answers that a merge moved to another class, or that a removal set aside.
CREATE TABLE moved_answers (
    change INTEGER NOT NULL REFERENCES class_changes,
    answer INTEGER NOT NULL REFERENCES answers,
    PRIMARY KEY (change, answer)
);
