-- Several classes for an image: a label is then a JSON list of the names of all its classes, sorted.

-- The last answer when the class was added: answers up to it do not say that the class is absent.
ALTER TABLE classes ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE class_changes ADD COLUMN since INTEGER NOT NULL DEFAULT 0;  -- of a class that is gone
ALTER TABLE class_changes ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;  -- the last answer then
-- The label of the answer before the change; NULL: that of files of older versions, the class.
ALTER TABLE moved_answers ADD COLUMN label TEXT;
