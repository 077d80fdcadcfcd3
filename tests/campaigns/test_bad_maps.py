"""A short part of the campaign of bad inputs of maps: are inputs counted, and failures told?"""

from pathlib import Path

import pytest

from tests.campaigns.test_kills import run_campaign


@pytest.mark.slow
def test_bad_inputs_are_counted_with_their_sentences(tmp_path: Path) -> None:
    found = run_campaign("bad_maps", tmp_path / "bad_maps.json", "--only", "columns or parquet")
    assert found["inputs"] == found["refused_in_one_sentence"] == found["outcomes"]["passed"] == 12
    sentences = [said for row in found["rows"] for said in row["said"]]
    assert len(sentences) == 12
    assert not any(str(tmp_path) in said for said in sentences)
