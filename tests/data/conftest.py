"""Nothing here may find real data, or reach the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinal.data import search


@pytest.fixture(autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and an empty system, in place of this machine's."""
    empty = tmp_path_factory.mktemp("nowhere")
    monkeypatch.delenv("SPINAL_DATA", raising=False)
    monkeypatch.setattr(search, "DEBIAN_FOLDER", empty / "system")
    monkeypatch.setattr(search.platformdirs, "user_cache_path", lambda *_: empty / "cache")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return empty
