"""Labels that exist before anybody is asked: tables, folders, other projects, Label Studio."""
