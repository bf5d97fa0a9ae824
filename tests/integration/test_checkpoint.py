"""A study that is killed goes on where it stopped, and ends as if nothing had happened."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dobandit import paper
from dobandit.errors import SimulationError
from dobandit.simulation.result import StudyResult
from dobandit.simulation.run import Checkpoint, prepare, run_block
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import study_of

pytestmark = pytest.mark.processes

REPLICATIONS = 64
SCRIPT = """
import json, signal, sys
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import Study

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told us to ignore it
study = Study.from_document(json.loads(sys.argv[2]))
run_study(study, workers=2, checkpoint=sys.argv[1]).save(sys.argv[1] + "/result")
"""
POLICIES = ["blm-lr:radius_scale=0.1", "ucb"]


def long_study():
    """A second of work."""
    return study_of(paper.G4, POLICIES, rounds=6000, replications=REPLICATIONS, rules=2, record=[100, 5000])


def short_study(**options):
    return study_of(paper.G4, POLICIES, **{"rounds": 50, "replications": 40, "rules": 2, **options})


def assert_same(first, second):
    for name in ("all_regret", "all_reward", "best_plays"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def start(folder):
    command = [sys.executable, "-c", SCRIPT, str(folder), json.dumps(long_study().to_document())]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def blocks(folder):
    return sorted((folder / "unfinished").glob("block-*.npz"))


def stop_in_the_middle(folder, how) -> subprocess.Popen:
    """Start the study in a process of its own, and stop it once some of it is done."""
    process = start(folder)
    for _ in range(6000):
        if blocks(folder):
            break
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(how)
    process.communicate(timeout=60)
    return process


@pytest.fixture(scope="module")
def uninterrupted():
    return run_study(long_study(), workers=2)


def test_after_kill_9_the_same_call_goes_on_and_ends_the_same(tmp_path, uninterrupted):
    assert stop_in_the_middle(tmp_path, signal.SIGKILL).returncode == -signal.SIGKILL
    done = len(blocks(tmp_path))
    times = {file: file.stat().st_mtime_ns for file in blocks(tmp_path)}
    assert done >= 1
    assert not (tmp_path / "result").exists()
    again = start(tmp_path)
    assert again.communicate(timeout=120)[1] == ""
    assert again.returncode == 0
    assert_same(StudyResult.load(tmp_path / "result"), uninterrupted)
    assert len(blocks(tmp_path)) > done
    assert all(file.stat().st_mtime_ns == then for file, then in times.items())  # what was done was not done again


def test_after_ctrl_c_too(tmp_path, uninterrupted):
    assert stop_in_the_middle(tmp_path, signal.SIGINT).returncode != 0
    counts = []
    kept = sum(len(block.replications) for block in Checkpoint(tmp_path, long_study()).finished())
    assert 0 < kept < REPLICATIONS
    assert_same(run_study(long_study(), checkpoint=tmp_path, progress=counts.append), uninterrupted)
    assert sum(counts) == REPLICATIONS


@pytest.mark.parametrize("workers", [1, 3])
def test_a_finished_study_is_read_and_not_run_again(workers, tmp_path):
    first = run_study(short_study(), checkpoint=tmp_path, workers=workers)
    times = [file.stat().st_mtime_ns for file in blocks(tmp_path)]
    assert_same(run_study(short_study(), checkpoint=tmp_path), first)
    assert [file.stat().st_mtime_ns for file in blocks(tmp_path)] == times


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "gone", "other"])
def test_a_damaged_block_counts_as_absent(damage, tmp_path):
    first = run_study(short_study(), checkpoint=tmp_path)
    file = blocks(tmp_path)[1]
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    elif damage == "other":
        np.savez(file, replications=np.arange(3))
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
        file.write_bytes({"cut": whole[:middle], "empty": b"", "flipped": flipped}[damage])
    assert_same(run_study(short_study(), checkpoint=tmp_path), first)
    assert_same(run_study(short_study()), first)


def test_leftover_drafts_do_no_harm(tmp_path):
    first = run_study(short_study(), checkpoint=tmp_path)
    (tmp_path / "unfinished" / "block-000000000.npz.1234.tmp").write_bytes(b"half")
    assert_same(run_study(short_study(), checkpoint=tmp_path), first)


@pytest.mark.parametrize("change", [{"seed": 1}, {"rounds": 51}, {"rules": 1}, {"record": [7]}])
def test_another_study_in_the_same_folder_is_refused(change, tmp_path):
    run_study(short_study(), checkpoint=tmp_path)
    with pytest.raises(SimulationError, match="unfinished study with other settings"):
        run_study(short_study(**change), checkpoint=tmp_path)


def test_more_or_fewer_replications_of_the_same_study_are_welcome(tmp_path):
    run_study(short_study(), checkpoint=tmp_path)
    for replications in (7, 55):
        wanted = short_study(replications=replications)
        counts = []
        assert_same(run_study(wanted, checkpoint=tmp_path, progress=counts.append), run_study(wanted))
        assert sum(counts) == replications


def test_places_that_cannot_be_used_are_refused(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(SimulationError, match="cannot keep unfinished work here"):
        run_study(short_study(), checkpoint=occupied)
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "study.json").write_text("{")
    with pytest.raises(SimulationError, match="cannot keep unfinished work here"):
        run_study(short_study(), checkpoint=tmp_path)


def test_a_block_of_another_shape_is_refused(tmp_path):
    kept = Checkpoint(tmp_path, short_study())
    other = short_study(record=[3])
    kept.add(run_block(other, prepare(other), [0, 1]))
    with pytest.raises(SimulationError, match="does not fit the study"):
        run_study(short_study(), checkpoint=tmp_path)


def test_saving_clears_up_the_work_of_this_study_and_of_no_other(tmp_path):
    other = run_study(short_study(seed=1))
    result = run_study(short_study(), checkpoint=tmp_path)
    other.save(tmp_path)
    assert blocks(tmp_path)
    result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["study.npz"]
    assert_same(StudyResult.load(tmp_path), result)
