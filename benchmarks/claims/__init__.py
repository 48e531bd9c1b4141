"""What holds of the paper's claims, computed from the runs under `results`."""
