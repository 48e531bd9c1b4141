-- Where an image can have several classes, a label is a sorted JSON list of all its class names.

-- The last answer before the class was added: answers up to it do not say that the class is absent.
ALTER TABLE classes ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE class_changes ADD COLUMN since INTEGER NOT NULL DEFAULT 0;  -- of a removed or merged class
ALTER TABLE class_changes ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;  -- the last answer before the change
-- The label of the answer before the change; NULL in files of older versions: the class itself.
ALTER TABLE moved_answers ADD COLUMN label TEXT;
