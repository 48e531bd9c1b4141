"""Labels that are known before anybody is asked: tables, folders, other projects, Label Studio."""
