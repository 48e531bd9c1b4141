"""HTTP interface to notes and flags on images."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from spinal.errors import LabelError
from spinal.label.store.notes import LONGEST, is_flagged
from spinal.label.store.project import Project
from spinal.label.web.requests import MOST_TILES, posted, read_text


class NoteTaker:
    """Answers requests to flag images and to add notes to them.

    Args:
        project: the project.
    """

    def __init__(self, project: Project) -> None:
        self.notes = project.store.notes
        self.routes = [Route("/api/notes", posted(self.set), methods=["POST"])]

    def set(self, body: dict[str, Any]) -> dict[str, Any]:
        """Set the flag or the note of a person on images; return all notes on the first image.

        Values that are not sent stay unchanged. An empty note deletes it.
        """
        person, images = read_text(body, "person"), body.get("images")
        flagged, note = body.get("flagged"), body.get("note")
        if (
            not isinstance(images, list)
            or not 1 <= len(images) <= MOST_TILES
            or not all(isinstance(image, int) for image in images)
        ):
            raise LabelError(f"send a list of 1 to {MOST_TILES} numbers of images")
        if not (flagged is None or isinstance(flagged, bool)):
            raise LabelError("flagged: true, false, or null to leave it unchanged")
        if not (note is None or (isinstance(note, str) and _is_note(note))):
            raise LabelError(f"note: a text of at most {LONGEST} characters")
        self.notes.set(images, person, flagged=flagged, note=note)
        return self.describe(images[0])

    def describe(self, image: int) -> dict[str, Any]:
        """Whether anybody ``flagged`` an image, and the ``notes`` of each person."""
        notes = self.notes.of(image)
        return {
            "flagged": is_flagged(notes),
            "notes": [
                {"person": row["person"], "flagged": bool(row["flagged"]), "note": row["note"]}
                for row in notes
            ],
        }


def _is_note(text: str) -> bool:
    words = " ".join(text.split())
    return len(words) <= LONGEST and (not words or words.isprintable())
