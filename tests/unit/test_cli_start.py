"""Commands start quickly: help texts load none of them."""

import subprocess
import sys

import click
import pytest

from dobandit.cli.experiments import experiment_group
from dobandit.cli.main import cli


@pytest.mark.parametrize("group", [cli, experiment_group], ids=lambda group: group.name)
def test_what_a_group_says_of_a_command_is_what_the_command_says(group):
    context = click.Context(group)
    for name, says in group.says.items():
        command = group.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert says == command.get_short_help_str(limit=1000)


@pytest.mark.parametrize("words", [["--help"], ["experiment", "--help"]], ids=" ".join)
def test_help_loads_no_package_that_computes(words):
    code = (
        "import sys, contextlib\nfrom dobandit.cli.main import main\n"
        f"with contextlib.suppress(SystemExit): main({words!r})\n"
        "print(sorted({'numpy', 'scipy', 'numba', 'sqlalchemy', 'rich', 'networkx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Commands:" in done.stdout


def test_an_answer_from_a_log_loads_no_statistics_package(tmp_path):
    code = (
        "import sys, dobandit as dob\n"
        "graph = dob.CausalGraph(edges=[('a', 'y')], target='y')\n"
        "experiment = dob.create_experiment('e', graph, budget=1, storage='memory')\n"
        "experiment.tell(experiment.ask().number, {'y': 1}); experiment.status(), experiment.best_observed()\n"
        "heavy = {'scipy.stats', 'networkx'}\n"
        "print(sorted({'scipy.optimize', 'scipy.special', *heavy} & set(sys.modules)))\n"
        "experiment.recommend()\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-2:] == ["[]", "[]"]


def test_a_graph_loads_no_masked_arrays():
    code = (
        "import sys, dobandit as dob\n"
        "dob.CausalGraph(edges=[('a', 'y')], target='y')\n"
        "print(sorted({'numpy.ma', 'numpy.random'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"  # every command builds one, and these would take a tenth of its time
