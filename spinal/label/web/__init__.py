"""The page: its files, the HTTP interface behind it, who may use it, and a simulated user."""
