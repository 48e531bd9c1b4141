-- Number of people whose labels count for an image; labels that were imported do not.
ALTER TABLE images ADD COLUMN people INTEGER NOT NULL DEFAULT 0;
UPDATE images SET people = (
    SELECT count(DISTINCT person) FROM answers
    WHERE image = images.id AND undone IS NULL AND label IS NOT NULL AND reason != 'known'
);
CREATE INDEX images_by_people ON images (people) WHERE people > 0;
CREATE INDEX images_of_one ON images (draw)
WHERE people = 1 AND label IS NOT NULL AND NOT reserved AND problem IS NULL AND twin IS NULL;
-- Numbers of answers by person.
CREATE INDEX answers_that_count ON answers (person) WHERE undone IS NULL;

-- Every question of a client renews its leases.
CREATE INDEX leases_by_client ON leases (client, place);
CREATE INDEX leases_by_place ON leases (place);
