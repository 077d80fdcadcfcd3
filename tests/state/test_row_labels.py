"""Row labels: stored as given; labelled rows are always positive."""

import torch

from onesided.state.row_labels import RowLabels

ROWS = torch.tensor([2, 0])
NO_LABELS = torch.tensor([False, False])


def test_rows_start_as_negative() -> None:
    assert RowLabels(3).read(ROWS, NO_LABELS).tolist() == [0, 0]


def test_a_fill_reaches_every_row_and_an_overwrite_only_its_own() -> None:
    labels = RowLabels(3)
    labels.fill(torch.tensor([0.1, 0.2, 0.3]))
    labels.overwrite(ROWS, torch.tensor([0.8, 0.9]))
    assert torch.equal(labels.positive, torch.tensor([0.9, 0.2, 0.8]))


def test_an_overwrite_replaces_the_label() -> None:
    labels = RowLabels(1)
    row, unlabelled = torch.tensor([0]), torch.tensor([False])
    for value in (0.25, 0.75, 0.5):
        labels.overwrite(row, torch.tensor([value]))
        assert float(labels.read(row, unlabelled)) == value


def test_observed_positives_are_positive_whatever_is_stored() -> None:
    labels = RowLabels(3)
    labels.fill(torch.tensor([0.1, 0.2, 0.3]))
    assert torch.equal(labels.read(ROWS, torch.tensor([True, False])), torch.tensor([1.0, 0.1]))
    assert float(labels.positive[2]) == torch.tensor(0.3).item()


def test_labels_survive_a_checkpoint() -> None:
    labels, other = RowLabels(3), RowLabels(3)
    labels.fill(torch.tensor([0.1, 0.2, 0.3]))
    other.load_state_dict(labels.state_dict())
    assert torch.equal(labels.positive, other.positive)
