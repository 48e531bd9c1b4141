-- Chosen by a person, as #rrggbb; NULL: determined by the place of the class.
ALTER TABLE classes ADD COLUMN colour TEXT;
ALTER TABLE class_changes ADD COLUMN colour TEXT; -- before the change
