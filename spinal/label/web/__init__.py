"""The page: its files, the HTTP interface behind it, access control, and a simulated user."""
